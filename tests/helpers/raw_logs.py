"""Small official-looking files to import."""

import polars as pl

LOG_COLUMNS = (
    "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,"
    "is_hate,long_view,play_time_ms,duration_ms,profile_stay_time,comment_stay_time,"
    "is_profile_enter,is_rand,tab"
)
USER_COLUMNS = (
    "user_id,user_active_degree,is_lowactive_period,is_live_streamer,is_video_author,"
    "follow_user_num,follow_user_num_range,fans_user_num,fans_user_num_range,friend_user_num,"
    "friend_user_num_range,register_days,register_days_range,"
    + ",".join(f"onehot_feat{k}" for k in range(18))
)
VIDEO_COLUMNS = (
    "video_id,author_id,video_type,upload_dt,upload_type,visible_status,video_duration,"
    "server_width,server_height,music_id,music_type,tag"
)
TENREC_COLUMNS = "user_id,item_id,click,follow,like,share,video_category,watching_times,gender,age"
START = 1_650_470_400_000
"""Midnight of 21 April 2022 in China, or 16 hours of the day before by UTC."""


def log_line(row, **changes):
    """Return a line of a KuaiRand log; the changes are by column."""
    values = dict.fromkeys(LOG_COLUMNS.split(","), 0)
    values |= {"user_id": row % 7, "video_id": row % 5, "date": 20220421, "hourmin": 1200}
    values |= {"time_ms": START + 1000 * row, "is_click": row % 2, "duration_ms": 9000, "tab": 1}
    return ",".join(str(v) for v in (values | changes).values())


def user_line(user, **changes):
    """Return a line of user features."""
    values = dict.fromkeys(USER_COLUMNS.split(","), 0)
    values |= {"user_id": user, "user_active_degree": "full_active", "follow_user_num": 3}
    values |= {"fans_user_num_range": '"[1k,5k)"', "is_live_streamer": 1}
    return ",".join(str(v) for v in (values | changes).values())


def video_line(video, **changes):
    """Return a line of video features."""
    values = dict.fromkeys(VIDEO_COLUMNS.split(","), 0)
    values |= {"video_id": video, "video_type": "NORMAL", "upload_dt": "2022-04-10"}
    values |= {"upload_type": "Web", "video_duration": "17200.0", "tag": '"12,65"'}
    return ",".join(str(v) for v in (values | changes).values())


def write_kuairand(folder, lines=None, users=None, videos=None, user_header=USER_COLUMNS):
    """Write one log file and both files of features; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [log_line(row) for row in range(40)] if lines is None else lines
    users = [user_line(user) for user in range(7)] if users is None else users
    videos = [video_line(video) for video in range(5)] if videos is None else videos
    for name, header, body in (
        ("log_standard_4_08_to_4_21_pure", LOG_COLUMNS, lines),
        ("user_features_pure", user_header, users),
        ("video_features_basic_pure", VIDEO_COLUMNS, videos),
    ):
        (folder / f"{name}.csv").write_text("\n".join([header, *body]) + "\n", encoding="utf-8")
    return folder


def read_part(folder, part="*"):
    """Return all rows of a part of an imported log, by their number."""
    return pl.concat(pl.read_parquet(f) for f in sorted(folder.glob(f"{part}/*.parquet"))).sort(
        "row"
    )
