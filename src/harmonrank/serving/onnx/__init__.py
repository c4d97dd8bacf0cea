"""Export of a model to ONNX, checked in ONNX Runtime; needs the extra `onnx`."""

from harmonrank.serving.onnx.check import TOLERANCE
from harmonrank.serving.onnx.export import Exported, export_onnx
from harmonrank.serving.onnx.exporters import EXPORTED

__all__ = ["EXPORTED", "TOLERANCE", "Exported", "export_onnx"]
