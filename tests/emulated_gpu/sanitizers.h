/* Which sanitizer this is built with, as 0 or 1, and its interface. */
#ifndef EMULATED_GPU_SANITIZERS_H
#define EMULATED_GPU_SANITIZERS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATED_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define EMULATED_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATED_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define EMULATED_TSAN 1
#endif
#ifndef EMULATED_ASAN
#define EMULATED_ASAN 0
#endif
#ifndef EMULATED_TSAN
#define EMULATED_TSAN 0
#endif

#if EMULATED_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if EMULATED_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#endif
