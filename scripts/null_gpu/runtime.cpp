// CUDA's runtime (cudart): memory is host memory, kernels do nothing, streams and events are always done.

#include "null_gpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

// ---- Errors.

static thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t result(cudaError_t error) {
  if (error) last_error = error;
  return error;
}

/// What every call returns that a lost device fails.
static cudaError_t state() { return result(is_lost() ? cudaErrorIllegalAddress : cudaSuccess); }

EXPORT cudaError_t cudaPeekAtLastError() { return is_lost() ? cudaErrorIllegalAddress : last_error; }

EXPORT cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

// ---- Streams, and the sums at the end.

static std::mutex streams_mutex;
static std::deque<Stream> streams;  // Never moved: handles point into it.
static std::atomic<long> allocations{0}, pinned_allocations{0};
static std::atomic<size_t> memory_used[MOST_DEVICES], memory_peak[MOST_DEVICES];

static Stream *new_stream(int device, int number) {
  std::lock_guard lock(streams_mutex);
  Stream &stream = streams.emplace_back();
  stream.device = device;
  stream.number = number;
  return &stream;
}

static Stream *default_stream(int device) {
  static Stream *of_devices[MOST_DEVICES];
  static std::once_flag made;
  std::call_once(made, [] {
    for (int device = 0; device < MOST_DEVICES; device++) of_devices[device] = new_stream(device, 0);
  });
  return of_devices[device];
}

/// The handles 1 and 2 name the default stream, too.
Stream *stream_of(cudaStream_t handle) {
  return uintptr_t(handle) > 2 ? (Stream *)handle : default_stream(current_device);
}

static struct Report {
  ~Report() {
    if (!getenv("NULLGPU_REPORT")) return;
    long launches = 0, copies = 0, syncs = 0;
    for (const Stream &stream : streams) {
      launches += stream.launches, copies += stream.copies, syncs += stream.syncs;
      if (stream.launches + stream.copies + stream.syncs > 0)
        fprintf(stderr, "nullgpu: stream" ON_STREAM " launches %ld copies %ld syncs %ld\n", OF(&stream),
                stream.launches.load(), stream.copies.load(), stream.syncs.load());
    }
    for (int device = 0; device < DEVICES; device++)
      fprintf(stderr, "nullgpu: memory cuda:%d peak-MiB %zu\n", device, memory_peak[device].load() >> 20);
    fprintf(stderr, "nullgpu: all launches %ld copies %ld syncs %ld allocations %ld pinned %ld\n", launches, copies, syncs,
            allocations.load(), pinned_allocations.load());
  }
} report;

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned, int) {
  static std::atomic<int> created{0};
  *handle = (cudaStream_t)new_stream(current_device, ++created);
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
EXPORT cudaError_t cudaStreamQuery(cudaStream_t) { return state(); }
EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return state(); }

static cudaError_t synchronized(const char *with, Stream *stream) {
  stream->syncs++;
  TRACE("S %s" ON_STREAM, with, OF(stream));
  return state();
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle) { return synchronized("stream", stream_of(handle)); }
EXPORT cudaError_t cudaDeviceSynchronize() { return synchronized("device", default_stream(current_device)); }

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }

// ---- Events: an event is the stream that it was recorded in.

struct Event {
  Stream *stream;
};

static cudaError_t new_event(cudaEvent_t *handle) {
  *handle = (cudaEvent_t) new Event{default_stream(current_device)};
  return cudaSuccess;
}

static cudaError_t recorded(cudaEvent_t handle, cudaStream_t stream) {
  ((Event *)handle)->stream = stream_of(stream);
  TRACE("E" ON_STREAM, OF(stream_of(stream)));
  return state();
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *handle) { return new_event(handle); }
EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned) { return new_event(handle); }
EXPORT cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) { return recorded(handle, stream); }
EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned) { return recorded(handle, stream); }
EXPORT cudaError_t cudaEventQuery(cudaEvent_t) { return state(); }
EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t handle) { return synchronized("event", ((Event *)handle)->stream); }

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  delete (Event *)handle;
  return cudaSuccess;
}

EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0.01f;
  return state();
}

// ---- Kernels: their names are registered by libtorch's initialisers.

static std::shared_mutex kernels_mutex;
static std::unordered_map<const void *, const char *> kernels;

EXPORT void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **) {}
EXPORT void __cudaUnregisterFatBinary(void **) {}
EXPORT void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}

EXPORT void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, void *, void *, void *, void *, int *) {
  std::unique_lock lock(kernels_mutex);
  kernels[host] = name;
}

static cudaError_t launched(const void *kernel, dim3 grid, dim3 block, cudaStream_t handle) {
  Stream *stream = stream_of(handle);
  launch(stream);
  if (trace.file) {
    std::shared_lock lock(kernels_mutex);
    const auto found = kernels.find(kernel);
    const char *name = found == kernels.end() ? "?" : found->second;
    TRACE("L" ON_STREAM " grid %u,%u,%u block %u %s", OF(stream), grid.x, grid.y, grid.z, block.x * block.y * block.z, name);
  }
  return state();
}

EXPORT cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **, size_t, cudaStream_t stream) {
  return launched(kernel, grid, block, stream);
}

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **) {
  return launched(kernel, config->gridDim, config->blockDim, config->stream);
}

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **, size_t, cudaStream_t stream) {
  return launched(kernel, grid, block, stream);
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = (cudaKernel_t)host;
  return cudaSuccess;
}

// `kernel<<<grid, block, shared, stream>>>` pushes its configuration, and the stub of the kernel pops it.

struct Configuration {
  dim3 grid, block;
  size_t shared;
  CUstream_st *stream;
};

static thread_local std::vector<Configuration> configurations;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (configurations.empty()) return cudaErrorUnknown;
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid, *block = top.block, *shared = top.shared, *(CUstream_st **)stream = top.stream;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }

EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

// ---- Devices.

static void capability(int *major, int *minor) {
  const char *text = getenv("NULLGPU_CAPABILITY");
  if (!text || sscanf(text, "%d.%d", major, minor) != 2) *major = 9, *minor = 0;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  if (DRIVER < CUDART_VERSION / 1000 * 1000) return result(cudaErrorInsufficientDriver);
  if (DEVICES == 0) return result(cudaErrorNoDevice);
  *count = DEVICES;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= DEVICES) return result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  *version = DRIVER;
  return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/// Those of an H100, mostly.
EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  memset(properties, 0, sizeof *properties);
  snprintf(properties->name, sizeof properties->name, "Null GPU %d", device);
  capability(&properties->major, &properties->minor);
  properties->totalGlobalMem = MEMORY;
  properties->multiProcessorCount = 132;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = 232448;
  properties->sharedMemPerMultiprocessor = 233472;
  properties->l2CacheSize = 50 << 20;
  properties->memPitch = 2147483647;
  properties->memoryBusWidth = 5120;
  properties->textureAlignment = 512;
  properties->asyncEngineCount = 3;
  properties->unifiedAddressing = properties->managedMemory = properties->concurrentKernels = properties->canMapHostMemory = 1;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, device);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = properties.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxGridDimX: *value = properties.maxGridSize[0]; break;
    case cudaDevAttrWarpSize: *value = properties.warpSize; break;
    default: *value = 1;
  }
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}

// ---- Memory.

enum class Kind { Pinned, Device };

struct Block {
  size_t size;
  Kind kind;
  int device;
};

static std::shared_mutex blocks_mutex;
static std::map<uintptr_t, Block> blocks;  // By address.

static void add_block(void *address, size_t size, Kind kind) {
  std::unique_lock lock(blocks_mutex);
  blocks[uintptr_t(address)] = {size, kind, current_device};
}

static void remove_block(void *address) {
  std::unique_lock lock(blocks_mutex);
  blocks.erase(uintptr_t(address));
}

/// The block that an address lies in; nothing for memory that the runtime doesn't know.
static std::optional<Block> block_at(const void *address) {
  std::shared_lock lock(blocks_mutex);
  auto next = blocks.upper_bound(uintptr_t(address));
  if (next == blocks.begin()) return {};
  const auto [begin, block] = *--next;
  return uintptr_t(address) < begin + block.size ? std::optional(block) : std::nullopt;
}

static bool is_on_device(const void *address) {
  const auto block = block_at(address);
  return block && block->kind == Kind::Device;
}

static const char *kind_of(const void *address) {
  const auto block = block_at(address);
  return !block ? "pageable" : block->kind == Kind::Pinned ? "pinned" : "device";
}

EXPORT cudaError_t cudaMalloc(void **address, size_t size) {
  *address = nullptr;
  TRACE("M %zu cuda:%d", size, current_device);
  if (is_lost()) return state();
  auto &used = memory_used[current_device];
  if (used.fetch_add(size) + size > MEMORY) {
    used -= size;
    return result(cudaErrorMemoryAllocation);
  }
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    used -= size;
    return result(cudaErrorMemoryAllocation);
  }
  allocations++;
  auto &peak = memory_peak[current_device];
  peak = std::max(peak.load(), used.load());
  add_block(memory, size, Kind::Device);
  *address = memory;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFree(void *address) {
  if (!address) return cudaSuccess;
  const auto block = block_at(address);
  if (!block) return result(cudaErrorInvalidValue);
  TRACE("F %zu cuda:%d", block->size, block->device);
  remove_block(address);
  memory_used[block->device] -= block->size;
  munmap(address, block->size);
  return state();
}

EXPORT cudaError_t cudaHostAlloc(void **address, size_t size, unsigned) {
  if (posix_memalign(address, 4096, size)) return result(cudaErrorMemoryAllocation);
  pinned_allocations++;
  TRACE("H %zu", size);
  add_block(*address, size, Kind::Pinned);
  return state();
}

EXPORT cudaError_t cudaFreeHost(void *address) {
  remove_block(address);
  free(address);
  return state();
}

EXPORT cudaError_t cudaHostRegister(void *address, size_t size, unsigned) {
  add_block(address, size, Kind::Pinned);
  return cudaSuccess;
}

EXPORT cudaError_t cudaHostUnregister(void *address) {
  remove_block(address);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *total = MEMORY;
  *free = MEMORY - memory_used[current_device];
  return state();
}

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
  memset(attributes, 0, sizeof *attributes);
  const auto block = block_at(address);
  attributes->type = !block                       ? cudaMemoryTypeUnregistered
                     : block->kind == Kind::Pinned ? cudaMemoryTypeHost
                                                   : cudaMemoryTypeDevice;
  attributes->device = block ? block->device : -2;
  attributes->hostPointer = attributes->devicePointer = (void *)address;
  return cudaSuccess;
}

/// What comes from a device is zeros, as no kernel has computed anything.
EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t handle) {
  Stream *stream = stream_of(handle);
  stream->copies++;
  if (trace.file) TRACE("C %s->%s %zu" ON_STREAM, kind_of(from), kind_of(to), size, OF(stream));
  if (is_lost()) return state();
  if (is_on_device(from) && !is_on_device(to))
    memset(to, 0, size);
  else
    memcpy(to, from, size);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
  return error ? error : synchronized("copy", default_stream(current_device));
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}

EXPORT cudaError_t cudaMemsetAsync(void *address, int value, size_t size, cudaStream_t handle) {
  launch(stream_of(handle));
  TRACE("L" ON_STREAM " memset %zu", OF(stream_of(handle)), size);
  if (is_lost()) return state();
  memset(address, value, size);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemset(void *address, int value, size_t size) { return cudaMemsetAsync(address, value, size, nullptr); }
EXPORT cudaError_t cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, cudaMemcpyKind) { return cudaSuccess; }

EXPORT cudaError_t cudaGetSymbolAddress(void **address, const void *) {
  static char bytes[1 << 16];
  *address = bytes;
  return cudaSuccess;
}

// ---- The driver's functions, which libtorch asks the runtime for by name.

static int any_function() { return 0; }

static int primary_context_state(int, unsigned *flags, int *is_active) {
  if (flags) *flags = 0;
  if (is_active) *is_active = 1;
  return 0;
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult *found) {
  const bool is_state = !strcmp(name, "cuDevicePrimaryCtxGetState");
  *function = is_state ? (void *)primary_context_state : (void *)any_function;
  if (found) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
