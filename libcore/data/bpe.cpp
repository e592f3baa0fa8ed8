#include "data/bpe.h"

#include <algorithm>

#include "base/error.h"
#include "data/bpe_merges.h"
#include "data/byte_alphabet.h"

namespace loongforge::data {
namespace {

using support::Json;

class ByteBpe : public VocabularyModel {
 public:
  ByteBpe(const Json& json, const std::string& where);

  std::unique_ptr<ModelScratch> make_scratch() const override {
    return std::make_unique<BpeScratch>();
  }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override;

 private:
  void spell_bytes();
  void start(std::string_view piece, BpeScratch& s) const;
  // The first merges: symbols are single bytes, so a table by byte pairs serves.
  Merge byte_pair(uint8_t a, uint8_t b) const { return byte_pairs_[size_t{a} << 8 | b]; }

  Vocabulary words_;       // as bytes; filled when ignore_merges wants whole pieces
  int32_t byte_ids_[256];  // -1: the vocabulary lacks the byte
  MergeTable merges_;
  std::vector<Merge> byte_pairs_;
  int32_t unk_ = -1;
  bool ignore_merges_ = false, fuse_unk_ = false;
};

ByteBpe::ByteBpe(const Json& json, const std::string& where)
    : VocabularyModel(read_bpe_vocabulary(json, where)) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    require_absent(json, key, where);
  ignore_merges_ = json.get_bool("ignore_merges", false);
  fuse_unk_ = json.get_bool("fuse_unk", false);
  unk_ = read_bpe_unk(json, vocabulary_, where);
  merges_ = make_merge_table(read_bpe_merges(json, vocabulary_, where));
  spell_bytes();
  // Byte tokens are never needed where every byte has its own character.
  if (std::find(std::begin(byte_ids_), std::end(byte_ids_), -1) != std::end(byte_ids_))
    require_absent(json, "byte_fallback", where);
}

void ByteBpe::spell_bytes() {
  std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
  if (ignore_merges_) words_.reserve(vocabulary_.size(), 0);
  for (int32_t id = 0; id < vocabulary_.end_id(); ++id) {
    auto word = alphabet_to_bytes(vocabulary_.token(id));
    if (!word || word->empty()) continue;
    if (word->size() == 1) byte_ids_[static_cast<uint8_t>((*word)[0])] = id;
    if (ignore_merges_) words_.add(*word, id);
  }
  byte_pairs_.assign(size_t{1} << 16, Merge{});
  for (size_t a = 0; a < 256; ++a)
    for (size_t b = 0; b < 256; ++b)
      if (byte_ids_[a] >= 0 && byte_ids_[b] >= 0)
        byte_pairs_[a << 8 | b] = merges_.find(byte_ids_[a], byte_ids_[b]);
}

void ByteBpe::start(std::string_view piece, BpeScratch& s) const {
  s.ids.clear();
  s.ends.clear();
  s.merges.clear();
  bool all_known = true;
  for (size_t i = 0; i < piece.size(); ++i) {
    int32_t id = byte_ids_[static_cast<uint8_t>(piece[i])];
    if (id < 0) {
      all_known = false;
      if (unk_ < 0) continue;  // the reference drops what it cannot spell
      bool fuse = fuse_unk_ && !s.ids.empty() && s.ids.back() == unk_;
      if (fuse) {
        s.ends.back() = static_cast<uint32_t>(i + 1);
        continue;
      }
      id = unk_;
    }
    s.ids.push_back(id);
    s.ends.push_back(static_cast<uint32_t>(i + 1));
  }
  for (size_t i = 0; i + 1 < s.ids.size(); ++i)
    s.merges.push_back(
        all_known ? byte_pair(static_cast<uint8_t>(piece[i]), static_cast<uint8_t>(piece[i + 1]))
                  : merges_.find(s.ids[i], s.ids[i + 1]));
}

void ByteBpe::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
                     std::vector<Range>* spans) const {
  if (piece.empty()) return;
  auto& s = static_cast<BpeScratch&>(scratch);
  bool cached = spans == nullptr && piece.size() <= PieceCache::kMaxBytes;
  uint64_t hash = 0;
  if (cached) {
    hash = hash_bytes(piece);
    if (s.cache.find(piece, hash, ids)) return;
  }
  if (ignore_merges_) {
    if (int32_t id = words_.find(piece); id >= 0) {
      ids.push_back(id);
      if (spans != nullptr) spans->push_back({0, piece.size()});
      if (cached) s.cache.put(piece, hash, &id, 1);
      return;
    }
  }
  start(piece, s);
  merge_symbols(merges_, s);
  ids.insert(ids.end(), s.ids.begin(), s.ids.end());
  if (spans != nullptr)
    for (size_t i = 0; i < s.ids.size(); ++i)
      spans->push_back({i == 0 ? 0 : s.ends[i - 1], s.ends[i]});
  if (cached) s.cache.put(piece, hash, s.ids.data(), s.ids.size());
}

}  // namespace

std::unique_ptr<TokenModel> make_byte_bpe(const Json& json, const std::string& where) {
  return std::make_unique<ByteBpe>(json, where);
}

}  // namespace loongforge::data
