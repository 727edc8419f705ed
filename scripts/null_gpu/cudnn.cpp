// cuDNN 9: executions of graphs and batch norms are counted; what a graph computes is named from its description.

#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "null_gpu.h"

// ---- The library and its handles.

struct Dnn {
  cudaStream_t stream = nullptr;
};

EXPORT size_t cudnnGetVersion() { return CUDNN_VERSION; }
EXPORT size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
EXPORT const char *cudnnGetErrorString(cudnnStatus_t status) { return status ? "the null GPU is lost" : "CUDNN_STATUS_SUCCESS"; }
EXPORT void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "the null GPU is lost"); }

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  *handle = (cudnnHandle_t) new Dnn;
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  ((Dnn *)handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  *stream = ((Dnn *)handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t executed(cudnnHandle_t handle, const std::string &what) {
  Stream *stream = stream_of(((Dnn *)handle)->stream);
  launch(stream);
  TRACE("X" ON_STREAM "%s", OF(stream), what.c_str());
  return is_lost() ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

// ---- Descriptors of the graph API: attributes as they were set. What is made from a graph remembers it.

/// How many engines the heuristics offer for a graph.
constexpr int64_t ENGINES = 3;

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes;
  Descriptor *graph = nullptr;

  /// The descriptor in an attribute.
  Descriptor *at(int name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() || found->second.size() < sizeof(void *) ? nullptr : *(Descriptor **)found->second.data();
  }

  template <typename T>
  std::vector<T> list(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    const T *first = (const T *)found->second.data();
    return std::vector<T>(first, first + found->second.size() / sizeof(T));
  }
};

static size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_HANDLE: return 8;
    default: return 4;
  }
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  *descriptor = (cudnnBackendDescriptor_t) new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}

/// They stay: a plan is named from its graph when it is executed, long after that was destroyed.
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  const char *bytes = (const char *)values;
  if (bytes) ((Descriptor *)descriptor)->attributes[name].assign(bytes, bytes + count * size_of(type));
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t finalized) {
  auto *descriptor = (Descriptor *)finalized;
  switch (descriptor->type) {
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      TRACE("plan");
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      TRACE("heuristics");
      descriptor->graph = descriptor->at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      descriptor->graph = descriptor->at(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
      break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      if (const Descriptor *engine = descriptor->at(CUDNN_ATTR_ENGINECFG_ENGINE); engine && !descriptor->graph)
        descriptor->graph = engine->graph;
      break;
    default: break;
  }
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t asked, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values) {
  const auto *descriptor = (const Descriptor *)asked;
  int64_t unused;
  if (!count) count = &unused;
  *count = 0;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = values ? std::min(room, ENGINES) : ENGINES;
      for (int64_t index = 0; values && index < *count; index++) ((Descriptor **)values)[index]->graph = descriptor->graph;
      break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      if (values) (*(Descriptor **)values)->graph = descriptor->graph;
      break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
      *count = 1;
      if (values) *(int64_t *)values = 0;
      break;
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      *count = 1;
      if (values) *(int64_t *)values = 1;
      break;
    default: {
      const std::vector<char> bytes = descriptor->list<char>(name);
      *count = bytes.size() / size_of(type);
      if (values) memcpy(values, bytes.data(), std::min<size_t>(room * size_of(type), bytes.size()));
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// ---- Executions of graphs.

/// As in 1024x64x8x8/nhwc.
static std::string shape(const Descriptor *tensor) {
  if (!tensor) return "-";
  std::string text;
  for (const int64_t size : tensor->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)) text += (text.empty() ? "" : "x") + std::to_string(size);
  const auto strides = tensor->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (strides.size() > 1) text += strides[1] == 1 ? "/nhwc" : "/nchw";
  return text;
}

static std::string operation(const Descriptor *descriptor) {
  switch (descriptor->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return " conv " + shape(descriptor->at(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)) + " * " +
             shape(descriptor->at(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return " dgrad";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: return " wgrad";
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return " pointwise";
    default: return " operation-" + std::to_string(descriptor->type);
  }
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  std::string what;
  if (trace.file) {
    const Descriptor *configuration = ((Descriptor *)plan)->at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (configuration && configuration->graph)
      for (const Descriptor *each : configuration->graph->list<Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) what += operation(each);
  }
  return executed(handle, what);
}

// ---- Batch norms, and their descriptors, which hold nothing.

#define DESCRIPTOR(name)                                                         \
  EXPORT cudnnStatus_t cudnnCreate##name(cudnn##name##_t *descriptor) {          \
    *descriptor = (cudnn##name##_t)malloc(1);                                    \
    return CUDNN_STATUS_SUCCESS;                                                 \
  }                                                                              \
  EXPORT cudnnStatus_t cudnnDestroy##name(cudnn##name##_t descriptor) {          \
    free(descriptor);                                                            \
    return CUDNN_STATUS_SUCCESS;                                                 \
  }

DESCRIPTOR(TensorDescriptor)
DESCRIPTOR(ActivationDescriptor)

EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t, cudnnDataType_t, int, const int *, const int *) {
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t, cudnnActivationMode_t, cudnnNanPropagation_t, double) {
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t no_bytes(size_t *size) {
  *size = 0;
  return CUDNN_STATUS_SUCCESS;
}

using Tensor = const cudnnTensorDescriptor_t;
using Activation = const cudnnActivationDescriptor_t;

EXPORT cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t,
                                                                              Tensor, Tensor, Tensor, Tensor, Activation, size_t *size) {
  return no_bytes(size);
}

EXPORT cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t,
                                                                          Activation, Tensor, size_t *size) {
  return no_bytes(size);
}

EXPORT cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, Tensor,
                                                                       Tensor, Tensor, Tensor, Tensor, Tensor, Activation, size_t *size) {
  return no_bytes(size);
}

EXPORT cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t, const void *, const void *,
                                                             Tensor, const void *, Tensor, void *, Tensor, const void *, const void *,
                                                             const void *, const void *, double) {
  return executed(handle, " norm-inference");
}

EXPORT cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t,
                                                              const void *, const void *, Tensor, const void *, Tensor, const void *,
                                                              Tensor, void *, Tensor, const void *, const void *, double, void *, void *,
                                                              double, void *, void *, cudnnActivationDescriptor_t, void *, size_t, void *,
                                                              size_t) {
  return executed(handle, " norm-training");
}

EXPORT cudnnStatus_t cudnnBatchNormalizationBackwardEx(cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void *,
                                                       const void *, const void *, const void *, Tensor, const void *, Tensor,
                                                       const void *, Tensor, const void *, Tensor, void *, Tensor, void *, Tensor,
                                                       const void *, const void *, void *, void *, double, const void *, const void *,
                                                       Activation, void *, size_t, void *, size_t) {
  return executed(handle, " norm-backward");
}
