// The NVIDIA driver's library, libcuda.so.1: it says what its settings say, and does nothing. A library of its own, without the
// CUDA headers, as programs load it by its name.

#include <cstdio>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))

static int setting(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static int devices() { return setting("NULLGPU_DEVICES", 1); }

// ---- What is asked before a device is used.

enum { SUCCESS = 0, NO_DEVICE = 100, INVALID_DEVICE = 101 };

EXPORT int cuInit(unsigned) { return setting("NULLGPU_INIT", devices() == 0 ? NO_DEVICE : SUCCESS); }

EXPORT int cuDriverGetVersion(int *version) {
  *version = setting("NULLGPU_DRIVER", 13000);
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count) {
  *count = devices();
  return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int number) {
  *device = number;
  return number < 0 || number >= devices() ? INVALID_DEVICE : SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, size, "Null GPU %d", device);
  return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int) {
  enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
  int major = 9, minor = 0;
  if (const char *text = getenv("NULLGPU_CAPABILITY")) sscanf(text, "%d.%d", &major, &minor);
  *value = attribute == CAPABILITY_MAJOR ? major : attribute == CAPABILITY_MINOR ? minor : 1;
  return SUCCESS;
}

EXPORT int cuGetErrorName(int code, const char **name) {
  switch (code) {
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case 802: *name = "CUDA_ERROR_SYSTEM_NOT_READY"; break;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; break;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; break;
    default: *name = nullptr;
  }
  return SUCCESS;
}

// ---- Contexts.

EXPORT int cuCtxGetCurrent(void **context) {
  *context = (void *)16;
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *is_active) {
  if (flags) *flags = 0;
  if (is_active) *is_active = 1;
  return SUCCESS;
}

// ---- What libtorch's libraries are linked against.

#define NOTHING(name) \
  EXPORT int name() { return SUCCESS; }

NOTHING(cuCtxSetCurrent)
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuFuncGetAttribute)
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetCacheConfig)
NOTHING(cuGetErrorString)
NOTHING(cuGetProcAddress_v2)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuLaunchKernel)
NOTHING(cuLinkAddData_v2)
NOTHING(cuLinkComplete)
NOTHING(cuLinkCreate_v2)
NOTHING(cuModuleGetFunction)
NOTHING(cuModuleLoad)
NOTHING(cuModuleLoadData)
NOTHING(cuModuleLoadDataEx)
NOTHING(cuModuleUnload)
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOTHING(cuPointerGetAttribute)
NOTHING(cuTensorMapEncodeTiled)
