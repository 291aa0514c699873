"""A saddle point by descent along one pair of variables and ascent along the other, gradients inside of gradients."""

from descent import argmin, forward, reverse

import tapeflow as tf


def prepare(values):
    return (tf.constant(values["start"], tf.float64),)


def saddle(outer, inner, start):
    def negative(p1, p2):
        return tf.reduce_sum(tf.square(p2)) - tf.reduce_sum(tf.square(p1))

    def highest(p1):
        return -negative(p1, argmin(inner, lambda p2: negative(p1, p2), start))

    p1 = argmin(outer, highest, start)
    return tf.concat([p1, argmin(outer, lambda p2: negative(p1, p2), start)], 0)


def rr(start):
    return saddle(reverse, reverse, start)


def ff(start):
    return saddle(forward, forward, start)


def fr(start):
    return saddle(forward, reverse, start)


def rf(start):
    return saddle(reverse, forward, start)
