"""Files: outputs that appear complete, and decoding of what is read back."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.support.storage.arrays import Array, read_arrays, write_arrays
    from harmonrank.support.storage.decoding import check_format, decode, read_toml
    from harmonrank.support.storage.files import (
        check_output,
        new_file,
        new_folder,
        read_json,
        resumable_folder,
        sha256,
        write_json,
    )
    from harmonrank.support.storage.staging import remove
    from harmonrank.support.storage.store import Store, digest, file_sums

__all__ = ["Array", "Store", "check_format", "check_output", "decode", "digest", "file_sums"]
__all__ += ["new_file", "new_folder", "read_arrays", "read_json", "read_toml", "remove"]
__all__ += ["resumable_folder", "sha256", "write_arrays", "write_json"]

__getattr__ = lazy_names(__name__)
