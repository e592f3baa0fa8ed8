#include "formats/tensorboard_events.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/checksum.h"
#include "base/file_ops.h"
#include "base/paths.h"

namespace loongforge::formats {
namespace {

template <class T>
void append_little_endian(std::string* to, T value) {
  for (size_t i = 0; i < sizeof value; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string framed(std::string_view message) {
  std::string record;
  append_little_endian(&record, static_cast<uint64_t>(message.size()));
  append_little_endian(&record, masked_crc(record));
  record.append(message);
  append_little_endian(&record, masked_crc(message));
  return record;
}

// Protobuf's wire format: a key is field number * 8 + kind.
enum Kind : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

void append_key(std::string* to, uint32_t field, Kind kind) {
  append_varint(to, field << 3 | kind);
}

void append_bytes(std::string* to, uint32_t field, std::string_view bytes) {
  append_key(to, field, kBytes);
  append_varint(to, bytes.size());
  to->append(bytes);
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
// SessionLog session_log = 7; }
std::string event(double wall_time, int64_t step) {
  std::string message;  // a zero is not written: it is what an absent number means
  if (wall_time != 0) {
    append_key(&message, 1, kFixed64);
    append_little_endian(&message, std::bit_cast<uint64_t>(wall_time));
  }
  if (step != 0) {
    append_key(&message, 2, kVarint);
    append_varint(&message, static_cast<uint64_t>(step));
  }
  return message;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path new_path(const std::filesystem::path& folder) {
  make_folders(folder);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string prefix = "events.out.tfevents." + std::to_string(static_cast<int64_t>(now())) +
                             "." + (host[0] != '\0' ? host.data() : "localhost") + "." +
                             std::to_string(getpid()) + ".";
  for (int n = 0;; ++n)
    if (const std::filesystem::path path = folder / (prefix + std::to_string(n));
        !path_exists(path, ErrorCode::kFailed))
      return path;
}

}  // namespace

std::string tensorboard_version_record(double wall_time) {
  std::string message = event(wall_time, 0);
  append_bytes(&message, 3, "brain.Event:2");
  return framed(message);
}

std::string tensorboard_start_record(double wall_time, int64_t step) {
  std::string message = event(wall_time, step), session_log;
  append_key(&session_log, 1, kVarint);
  append_varint(&session_log, 1);  // SessionLog { status = START }
  append_bytes(&message, 7, session_log);
  return framed(message);
}

std::string tensorboard_scalar_record(double wall_time, int64_t step,
                                      std::span<const TensorboardScalar> scalars) {
  std::string message = event(wall_time, step), summary;
  for (const TensorboardScalar& scalar : scalars) {
    std::string value;  // Summary.Value { string tag = 1; float simple_value = 2; }
    append_bytes(&value, 1, scalar.tag);
    append_key(&value, 2, kFixed32);
    append_little_endian(&value, std::bit_cast<uint32_t>(scalar.value));
    append_bytes(&summary, 1, value);
  }
  append_bytes(&message, 5, summary);
  return framed(message);
}

TensorboardWriter::TensorboardWriter(const std::filesystem::path& folder, int64_t first_step)
    : file_(File::append(new_path(folder))) {
  const double time = now();
  const std::string head =
      tensorboard_version_record(time) + tensorboard_start_record(time, first_step);
  file_.write({reinterpret_cast<const uint8_t*>(head.data()), head.size()});
}

void TensorboardWriter::scalars(int64_t step, std::span<const TensorboardScalar> values) {
  const std::string record = tensorboard_scalar_record(now(), step, values);
  file_.write({reinterpret_cast<const uint8_t*>(record.data()), record.size()});
}

}  // namespace loongforge::formats
