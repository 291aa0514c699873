// How a kernel reports that elements of its result are there, so that whoever uses them next finds them in the cache.
#pragma once

#include "base/parallel.h"

namespace tapeflow {

// epilogue(first, count, rows, pitch): `rows` runs of `count` elements, which begin `pitch` apart, from element `first`
// of the result on, are computed. It is called once for every element, by the thread that computed it.
using Epilogue = FunctionRef<void(int64_t first, int64_t count, int64_t rows, int64_t pitch)>;

}  // namespace tapeflow
