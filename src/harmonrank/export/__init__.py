"""Export of a model to ONNX, checked in ONNX Runtime; needs the extra `onnx`."""

from harmonrank.export.check import TOLERANCE
from harmonrank.export.export import Exported, export_onnx
from harmonrank.export.exporters import EXPORTED

__all__ = ["EXPORTED", "TOLERANCE", "Exported", "export_onnx"]
