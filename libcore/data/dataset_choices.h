// What a user chooses about datasets, apart from their files. Thread-safety: values.
#pragma once

namespace loongforge::data {

// What of a text dataset makes a sample.
enum class TextChunks {
  kRecord,     // a record's text; of a .txt file a paragraph
  kParagraph,  // what stands between blank lines
  kLine,
  // Pieces of cutoff_len tokens out of all texts one after the other, each ended by the eos token;
  // only the last may be shorter.
  kPacked,
};

// How several datasets become one.
enum class MixStrategy {
  kConcat,           // one after the other
  kInterleaveUnder,  // drawn by weight until a dataset has nothing left
  kInterleaveOver,   // drawn by weight until every one was used up; those that end begin again
};

}  // namespace loongforge::data
