"""Saved models that were changed, with checksums that are right again."""

import hashlib
import json

from safetensors.numpy import load_file, save_file


def signed(folder):
    """Make the checksums of a folder right."""
    files = [file for file in folder.iterdir() if file.name != "checksums.json"]
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    (folder / "checksums.json").write_text(json.dumps(sums))


def rewrite(saved, part=None, **changes):
    """Change parts of model.json, or of one of its parts; None removes one."""
    document = json.loads((saved / "model.json").read_text())
    place = document if part is None else document[part]
    for key, value in changes.items():
        if value is None:
            del place[key]
        else:
            place[key] = value
    (saved / "model.json").write_text(json.dumps(document))
    signed(saved)


def rewrite_arrays(saved, change):
    """Change the arrays."""
    path = saved / "weights.safetensors"
    save_file(change(load_file(path)), path)
    signed(saved)
