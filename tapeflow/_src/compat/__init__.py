"""TensorFlow's v1 and inner interfaces, loaded when a program asks for them."""
