"""Saved models that were changed, with checksums that are right again."""

import hashlib
import json

from safetensors.numpy import load_file, save_file


def rewrite(saved, part=None, **changes):
    """Change parts of model.json, or of one of its parts, and make its checksum right again."""
    document = json.loads((saved / "model.json").read_text())
    place = document if part is None else document[part]
    for key, value in changes.items():
        if value is None:
            del place[key]
        else:
            place[key] = value
    text = json.dumps(document).encode()
    (saved / "model.json").write_bytes(text)
    sums = json.loads((saved / "checksums.json").read_text())
    sums["model.json"] = hashlib.sha256(text).hexdigest()
    (saved / "checksums.json").write_text(json.dumps(sums))


def rewrite_arrays(saved, change):
    """Change the arrays and make their checksum right again."""
    path = saved / "weights.safetensors"
    save_file(change(load_file(path)), path)
    sums = json.loads((saved / "checksums.json").read_text())
    sums[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (saved / "checksums.json").write_text(json.dumps(sums))
