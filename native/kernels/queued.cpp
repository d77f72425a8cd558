// How long the calling thread could have run, had a processor been free.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "kernels.hpp"

namespace forebay {

std::int64_t queued_nanoseconds() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[64];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  char* second = nullptr;
  std::strtoll(text, &second, 10);  // The first figure is time on a processor.
  return std::strtoll(second, nullptr, 10);
}

}  // namespace forebay
