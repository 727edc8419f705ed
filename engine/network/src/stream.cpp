// What tch lacks of libtorch: a stream of a thread's own. Needs no CUDA headers.
#include <c10/core/impl/VirtualGuardImpl.h>

// Makes a stream of libtorch's pool the calling thread's current one on a CUDA device. 0, or 1 where libtorch throws.
extern "C" int tusker_use_own_stream(signed char device) {
  try {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    const c10::Device where(c10::DeviceType::CUDA, device);
    guard.setDevice(where);
    guard.exchangeStream(guard.getStreamFromGlobalPool(where));
    return 0;
  } catch (...) {
    return 1;
  }
}
