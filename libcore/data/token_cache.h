// Tokenised datasets kept on disk, so that a second start reads numbers instead of text: a folder
// <name>-<key> under the cache's folder, with cache.json (key, sizes, checksums), tokens.bin (the
// words of a SampleTable, LoongIR ids) and index.bin (its entries), both little-endian and mapped
// as they are. It appears complete or not at all, and is believed only when its key is the asked
// one and every byte matches its checksum.
// Thread-safety: functions; a writer belongs to one thread. Several processes may share a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/api.h"
#include "base/file.h"
#include "data/dataset.h"
#include "data/sample_reader.h"
#include "support/json.h"

namespace loongforge::data {

// $XDG_CACHE_HOME/loongforge/tokens, else ~/.cache/loongforge/tokens; empty without either.
LF_API std::string default_token_cache();

// What tells one tokenizer from another: a hash over its files and generation_config.json.
LF_API std::string tokenizer_fingerprint(const std::string& path);

struct TokenCacheKey {
  std::string name;     // of the dataset, for the eye
  support::Json value;  // all that decides the samples
  std::filesystem::path folder_in(const std::string& cache) const;
};
TokenCacheKey token_cache_key(const DatasetOptions& options, const SampleReader& reader,
                              const ContentHash& content);

struct CachedSamples {
  SampleTable samples;
  DatasetCounts counts;
};
// nullopt: there is none. Error(kBadData) where it is broken, or another's. id_limit: ids from
// here on are wrong (the tokenizer's vocab_size()).
std::optional<CachedSamples> open_token_cache(const std::filesystem::path& folder,
                                              const TokenCacheKey& key, int64_t id_limit);

// Writes as samples come: memory does not grow with them.
class TokenCacheWriter {
 public:
  TokenCacheWriter(const std::filesystem::path& folder, TokenCacheKey key);
  void add(const Sample& sample);
  void finish(const DatasetCounts& counts);

 private:
  struct Stream {
    explicit Stream(const std::filesystem::path& path) : file(File::create(path)) {}
    void write(std::span<const uint8_t> bytes);
    void finish();
    File file;
    std::vector<uint8_t> pending{};
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };

  TokenCacheKey key_;
  FolderWriter folder_;
  std::optional<Stream> tokens_, index_;
  std::vector<int32_t> words_;  // of one sample
};

}  // namespace loongforge::data
