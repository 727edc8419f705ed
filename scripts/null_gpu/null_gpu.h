// What the parts of the null GPU share: its settings, what is counted and traced, and when its devices fail.
#pragma once

#include <cuda_runtime_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#define EXPORT extern "C" __attribute__((visibility("default")))

// ---- Settings: README.md explains them.

constexpr int MOST_DEVICES = 64;

inline long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

inline const int DEVICES = setting("NULLGPU_DEVICES", 1);
inline const int DRIVER = setting("NULLGPU_DRIVER", 13000);
inline const size_t MEMORY = size_t(setting("NULLGPU_MIB", 80 << 10)) << 20;
inline const long LAUNCH_US = setting("NULLGPU_LAUNCH_US", 0);
inline const long FAIL_AFTER = setting("NULLGPU_FAIL_AFTER", -1);
inline const int FAIL_DEVICE = setting("NULLGPU_FAIL_DEVICE", -1);

// ---- Devices and streams.

/// A stream. The runtime's handle points to it; the handle 0 is the device's default stream, number 0.
struct Stream {
  int device;
  int number;
  std::atomic<long> launches{0}, copies{0}, syncs{0};
};

/// The device that the calling thread has chosen.
inline thread_local int current_device = 0;

Stream *stream_of(cudaStream_t handle);

// ---- The trace: one file a thread, one line an operation, with the microseconds of its beginning.

struct Trace {
  FILE *file = nullptr;

  Trace() {
    const char *folder = getenv("NULLGPU_TRACE");
    if (!folder) return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d-%ld.txt", folder, getpid(), syscall(SYS_gettid));
    file = fopen(path, "w");
  }

  ~Trace() {
    if (file) fclose(file);
    file = nullptr;
  }
};

inline thread_local Trace trace;

inline double microseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

#define TRACE(...)                                      \
  do {                                                  \
    if (trace.file) {                                   \
      fprintf(trace.file, "%.1f ", microseconds());     \
      fprintf(trace.file, __VA_ARGS__);                 \
      fputc('\n', trace.file);                          \
    }                                                   \
  } while (0)

#define ON_STREAM " cuda:%d/%d"
#define OF(stream) (stream)->device, (stream)->number

// ---- What is done.

inline std::atomic<long> all_launches{0};

/// Whether the calling thread's device fails by now. It never recovers, as after an illegal address.
inline bool is_lost() {
  return FAIL_AFTER >= 0 && all_launches.load(std::memory_order_relaxed) > FAIL_AFTER &&
         (FAIL_DEVICE < 0 || FAIL_DEVICE == current_device);
}

/// Counts a launch, which takes the thread as long as it is set to.
inline void launch(Stream *stream) {
  all_launches++;
  stream->launches++;
  if (LAUNCH_US > 0) {
    const double end = microseconds() + LAUNCH_US;
    while (microseconds() < end) {
    }
  }
}
