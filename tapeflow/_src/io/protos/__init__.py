"""Protocol buffers: the wire format, messages, tensors as messages."""
