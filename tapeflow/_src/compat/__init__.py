"""TensorFlow's older and inner interfaces, loaded when a program asks for them."""
