"""Whether training works: health over the steps, gradients that go astray, traps of shape and meaning."""
