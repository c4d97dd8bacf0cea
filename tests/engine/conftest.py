from ray_workers import ray_engine  # noqa: F401
