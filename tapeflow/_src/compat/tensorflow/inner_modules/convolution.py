"""A convolution whose settings are given before its input and its filter."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.types.tensor_shape import as_shape

_convolution = find_public("nn.convolution")


class Convolution:
    """`tf.nn.convolution` with its settings; the shapes determine how many dimensions are spatial."""

    def __init__(
        self,
        input_shape: Any,
        filter_shape: Any,
        padding: str,
        strides: Any = None,
        dilation_rate: Any = None,
        name: str | None = None,
        data_format: str | None = None,
        num_spatial_dims: int | None = None,
    ) -> None:
        self.input_shape, self.filter_shape = as_shape(input_shape), as_shape(filter_shape)
        rank = self.filter_shape.rank if self.input_shape.rank is None else self.input_shape.rank
        if rank is None and num_spatial_dims is None:
            raise ValueError("rank of input must be statically known or num_spatial_dims must be provided.")
        self.num_spatial_dims = rank - 2 if num_spatial_dims is None else num_spatial_dims
        self.strides = [1] * self.num_spatial_dims if strides is None else strides
        self.dilation_rate = [1] * self.num_spatial_dims if dilation_rate is None else dilation_rate
        self.padding, self.data_format, self.name = padding, data_format, name

    def __call__(self, inp: Any, filter: Any) -> Any:
        """The convolution of an input with a filter."""
        return _convolution(
            inp, filter, self.strides, self.padding, self.data_format, self.dilation_rate, name=self.name
        )
