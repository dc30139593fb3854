// Includes the functions that the kernels of all variants call.
#ifndef RANKSVM_DEVICE_BODIES_HPP
#define RANKSVM_DEVICE_BODIES_HPP

#include "calibration.hpp"
#include "cholesky.hpp"
#include "coded.hpp"
#include "curvature.hpp"
#include "documents.hpp"
#include "fused.hpp"
#include "losses.hpp"
#include "rows.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#endif
