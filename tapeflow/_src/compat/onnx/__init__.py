"""Functions as ONNX models."""
