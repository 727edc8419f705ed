// cuBLAS: products are counted.

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstring>

#include "null_gpu.h"

struct Blas {
  cudaStream_t stream = nullptr;
};

static cublasStatus_t product(const char *call, long m, long n, long k, cudaStream_t handle) {
  Stream *stream = stream_of(handle);
  launch(stream);
  TRACE("G" ON_STREAM " %s %ldx%ldx%ld", OF(stream), call, m, n, k);
  return is_lost() ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product(const char *call, long m, long n, long k, cublasHandle_t handle) {
  return product(call, m, n, k, ((Blas *)handle)->stream);
}

// ---- Handles.

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  *handle = (cublasHandle_t) new Blas;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete (Blas *)handle;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  ((Blas *)handle)->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t *mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t *mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
EXPORT cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }

// ---- Products.

EXPORT cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m, int n, int k, const float *,
                                     const float *, int, const float *, int, const float *, float *, int) {
  return product("sgemm", m, n, k, handle);
}

EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void *,
                                   const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
                                   cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) {
  return product("gemmex", m, n, k, handle);
}

EXPORT cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t, int m, int n, const float *, const float *, int,
                                     const float *, int, const float *, float *, int) {
  return product("sgemv", m, n, 1, handle);
}

EXPORT cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float *, int, const float *, int, float *) {
  return product("sdot", n, 1, 1, handle);
}

// ---- cuBLASLt: its descriptors hold nothing.

#define DESCRIPTOR(type, name, ...)                                  \
  EXPORT cublasStatus_t cublasLt##name##Create(type *descriptor, ##__VA_ARGS__) { \
    *descriptor = (type)malloc(1);                                   \
    return CUBLAS_STATUS_SUCCESS;                                    \
  }                                                                  \
  EXPORT cublasStatus_t cublasLt##name##Destroy(type descriptor) {   \
    free(descriptor);                                                \
    return CUBLAS_STATUS_SUCCESS;                                    \
  }

DESCRIPTOR(cublasLtMatmulDesc_t, MatmulDesc, cublasComputeType_t, cudaDataType_t)
DESCRIPTOR(cublasLtMatmulPreference_t, MatmulPreference)
DESCRIPTOR(cublasLtMatrixLayout_t, MatrixLayout, cudaDataType, uint64_t, uint64_t, int64_t)

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                           const void *, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t found[],
                                                     int *count) {
  memset(found, 0, sizeof found[0]);
  found[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t,
                                     const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *,
                                     cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t stream) {
  return product("lt", 0, 0, 0, stream);
}
