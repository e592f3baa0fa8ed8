#include "formats/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::printable;

namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kEndMagic = 0x06054b50,
                   kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocator64Bytes = 20;
constexpr uint16_t kEncrypted = 1, kHasDescriptor = 8;
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kMax16 = 0xffff;
constexpr uint32_t kMax32 = 0xffffffff;
// Far above any model's; bounds what the directory can make us allocate.
constexpr uint64_t kMaxDirectoryBytes = uint64_t{1} << 26;

template <class T>
T at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string read_bytes(const File& file, uint64_t offset, uint64_t bytes) {
  std::string out(bytes, '\0');
  file.read_at(offset, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  return out;
}

// Where the central directory stands.
struct Directory {
  uint64_t entries = 0, bytes = 0, offset = 0;
  uint64_t end = 0;  // of what entries may take: the first byte of the end records
};

class ZipReader {
 public:
  explicit ZipReader(const File& file) : file_(file), size_(file.size()) {}
  std::vector<ZipEntry> read();

 private:
  struct Central {
    ZipEntry entry;
    uint16_t flags = 0;
    uint64_t local = 0;  // offset of the local header
  };

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw_bad_data(file_.path().string(), what, std::move(hint));
  }
  [[noreturn]] void fail(const Central& central, const std::string& what,
                         std::string hint = {}) const {
    throw_bad_data(file_.path().string() + ": " + printable(central.entry.name), what,
                   std::move(hint));
  }
  Directory find_directory() const;
  void read_end64(uint64_t locator, Directory* directory) const;
  Central parse_central(std::string_view header, std::string_view extra, std::string name) const;
  void read_zip64_extra(std::string_view extra, bool want_size, bool want_packed, bool want_offset,
                        uint64_t* packed, Central* central) const;
  void check_local(Central* central, uint64_t data_end) const;
  void check_overlaps(std::vector<Central> all) const;

  const File& file_;
  uint64_t size_;
};

// The end record stands at the end of the file, before a comment of at most 65535 bytes.
Directory ZipReader::find_directory() const {
  const char* const again = "the file is truncated or no torch file; fetch it again";
  if (size_ < kEndBytes)
    fail("has " + std::to_string(size_) + " bytes, too few for a zip file", again);
  const uint64_t tail = std::min<uint64_t>(size_, kEndBytes + kMax16);
  const std::string bytes = read_bytes(file_, size_ - tail, tail);
  std::optional<size_t> found;
  for (size_t i = tail - kEndBytes + 1; i-- > 0 && !found;) {
    if (at<uint32_t>(bytes, i) == kEndMagic &&
        i + kEndBytes + at<uint16_t>(bytes, i + 20) == tail) {
      found = i;
    }
  }
  if (!found) fail("has no zip directory at its end", again);
  const std::string_view end = std::string_view(bytes).substr(*found, kEndBytes);
  Directory directory;
  directory.entries = at<uint16_t>(end, 10);
  directory.bytes = at<uint32_t>(end, 12);
  directory.offset = at<uint32_t>(end, 16);
  directory.end = size_ - tail + *found;
  if (at<uint16_t>(end, 4) != 0 && at<uint16_t>(end, 4) != kMax16)
    fail("is one part of a zip file in several parts");
  if (directory.end >= kLocator64Bytes) {
    const uint64_t locator = directory.end - kLocator64Bytes;
    if (at<uint32_t>(read_bytes(file_, locator, 4), 0) == kLocator64Magic)
      read_end64(locator, &directory);
  }
  if (directory.offset > directory.end || directory.bytes > directory.end - directory.offset) {
    fail("its zip directory of " + std::to_string(directory.bytes) + " bytes at offset " +
             std::to_string(directory.offset) + " is not inside the file, which has " +
             std::to_string(size_) + " bytes",
         "the file is damaged; fetch it again");
  }
  if (directory.bytes > kMaxDirectoryBytes || directory.entries > directory.bytes / kCentralBytes) {
    fail("its zip directory claims " + std::to_string(directory.entries) + " entries in " +
             std::to_string(directory.bytes) + " bytes",
         "the file is damaged; fetch it again");
  }
  return directory;
}

void ZipReader::read_end64(uint64_t locator, Directory* directory) const {
  const uint64_t offset = at<uint64_t>(read_bytes(file_, locator, kLocator64Bytes), 8);
  if (locator < kEnd64Bytes || offset > locator - kEnd64Bytes)
    fail("its ZIP64 end record is not inside the file", "the file is damaged; fetch it again");
  const std::string end = read_bytes(file_, offset, kEnd64Bytes);
  if (at<uint32_t>(end, 0) != kEnd64Magic)
    fail("has no ZIP64 end record where it should stand", "the file is damaged; fetch it again");
  directory->entries = at<uint64_t>(end, 32);
  directory->bytes = at<uint64_t>(end, 40);
  directory->offset = at<uint64_t>(end, 48);
  directory->end = offset;
}

void ZipReader::read_zip64_extra(std::string_view extra, bool want_size, bool want_packed,
                                 bool want_offset, uint64_t* packed, Central* central) const {
  while (extra.size() >= 4) {
    const auto id = at<uint16_t>(extra, 0), bytes = at<uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) fail(*central, "its extra field in the directory ends early");
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(4 + size_t{bytes});
    if (id != kZip64Extra) continue;
    const auto take = [&](bool want, uint64_t* value) {
      if (!want) return;
      if (field.size() < 8) fail(*central, "its ZIP64 field in the directory ends early");
      *value = at<uint64_t>(field, 0);
      field.remove_prefix(8);
    };
    take(want_size, &central->entry.bytes);
    take(want_packed, packed);
    take(want_offset, &central->local);
    return;
  }
  fail(*central, "lacks the ZIP64 field that its sizes point to");
}

ZipReader::Central ZipReader::parse_central(std::string_view header, std::string_view extra,
                                            std::string name) const {
  Central central;
  central.entry.name = std::move(name);
  central.flags = at<uint16_t>(header, 8);
  const auto method = at<uint16_t>(header, 10);
  uint64_t packed = at<uint32_t>(header, 20);
  central.entry.bytes = at<uint32_t>(header, 24);
  central.local = at<uint32_t>(header, 42);
  const bool wide_size = central.entry.bytes == kMax32, wide_packed = packed == kMax32,
             wide_offset = central.local == kMax32;
  if (wide_size || wide_packed || wide_offset)
    read_zip64_extra(extra, wide_size, wide_packed, wide_offset, &packed, &central);
  if ((central.flags & kEncrypted) != 0) fail(central, "the entry is encrypted");
  if (method != 0) {
    fail(central,
         "the entry is compressed (method " + std::to_string(method) + ", " +
             std::to_string(packed) + " bytes for " + std::to_string(central.entry.bytes) +
             "), torch stores its entries as they are",
         "this is no file of torch's; load it with torch and save it again");
  }
  if (packed != central.entry.bytes) {
    fail(central, "is stored, but has " + std::to_string(packed) + " bytes in the file and " +
                      std::to_string(central.entry.bytes) + " outside of it");
  }
  return central;
}

// The data begins behind the local header, whose extra field is torch's padding and not the
// directory's.
void ZipReader::check_local(Central* central, uint64_t data_end) const {
  if (central->local > data_end || data_end - central->local < kLocalBytes) {
    fail(*central, "its header at offset " + std::to_string(central->local) +
                       " is not inside the file's data, which ends at " + std::to_string(data_end));
  }
  const std::string header = read_bytes(file_, central->local, kLocalBytes);
  if (at<uint32_t>(header, 0) != kLocalMagic)
    fail(*central, "has no entry at offset " + std::to_string(central->local));
  const auto flags = at<uint16_t>(header, 6), method = at<uint16_t>(header, 8);
  const uint64_t name_bytes = at<uint16_t>(header, 26), extra_bytes = at<uint16_t>(header, 28);
  const uint64_t room = data_end - central->local - kLocalBytes;
  if (name_bytes + extra_bytes > room || central->entry.bytes > room - name_bytes - extra_bytes) {
    fail(*central,
         "its " + std::to_string(central->entry.bytes) + " bytes at offset " +
             std::to_string(central->local + kLocalBytes + name_bytes + extra_bytes) +
             " end beyond the file's data, which ends at " + std::to_string(data_end),
         "the file is damaged; fetch it again");
  }
  if (method != 0 || (flags & kEncrypted) != 0 ||
      read_bytes(file_, central->local + kLocalBytes, name_bytes) != central->entry.name) {
    fail(*central, "its own header contradicts the directory");
  }
  const uint32_t packed = at<uint32_t>(header, 18), plain = at<uint32_t>(header, 22);
  if ((flags & kHasDescriptor) == 0 && packed != kMax32 && plain != kMax32 &&
      (packed != central->entry.bytes || plain != central->entry.bytes)) {
    fail(*central, "its own header gives it " + std::to_string(plain) + " bytes, the directory " +
                       std::to_string(central->entry.bytes));
  }
  central->entry.offset = central->local + kLocalBytes + name_bytes + extra_bytes;
}

void ZipReader::check_overlaps(std::vector<Central> all) const {
  std::sort(all.begin(), all.end(),
            [](const Central& a, const Central& b) { return a.local < b.local; });
  for (size_t i = 1; i < all.size(); ++i) {
    const ZipEntry& before = all[i - 1].entry;
    if (all[i].local < before.offset + before.bytes)
      fail(all[i], "its bytes overlap those of " + printable(before.name));
  }
}

std::vector<ZipEntry> ZipReader::read() {
  const Directory directory = find_directory();
  const std::string bytes = read_bytes(file_, directory.offset, directory.bytes);
  std::vector<Central> all;
  std::unordered_set<std::string> names;
  size_t position = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const std::string_view rest = std::string_view(bytes).substr(position);
    const std::string number = "entry " + std::to_string(i) + " of its zip directory ";
    if (rest.size() < kCentralBytes) fail(number + "ends early");
    if (at<uint32_t>(rest, 0) != kCentralMagic) fail(number + "is no entry");
    const size_t name = at<uint16_t>(rest, 28), extra = at<uint16_t>(rest, 30),
                 comment = at<uint16_t>(rest, 32);
    if (rest.size() - kCentralBytes < name + extra + comment) fail(number + "ends early");
    Central central =
        parse_central(rest.substr(0, kCentralBytes), rest.substr(kCentralBytes + name, extra),
                      std::string(rest.substr(kCentralBytes, name)));
    check_local(&central, directory.offset);
    if (!names.insert(central.entry.name).second) fail(central, "the entry's name stands twice");
    all.push_back(std::move(central));
    position += kCentralBytes + name + extra + comment;
  }
  if (position != bytes.size()) {
    fail("its zip directory has " + std::to_string(bytes.size() - position) +
         " bytes behind its last entry");
  }
  check_overlaps(all);
  std::vector<ZipEntry> out;
  out.reserve(all.size());
  for (Central& central : all) out.push_back(std::move(central.entry));
  return out;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const File& file) { return ZipReader(file).read(); }

}  // namespace loongforge::formats
