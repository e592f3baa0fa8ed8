#include "support/printable.h"

namespace loongforge::support {

std::string printable(std::string_view text, size_t most) {
  std::string out;
  for (char c : text.substr(0, most)) {
    const auto u = static_cast<unsigned char>(c);
    out += u < 0x20 || u >= 0x7f ? '?' : c;
  }
  if (text.size() > most) out += "...";
  return out;
}

}  // namespace loongforge::support
