// Records what TensorFlow's own BFCAllocator does with pseudo-random requests: one JSON document
// per line of the settings below, written to the folder given. A second argument is appended to the
// names, and gives other requests. How to build it: README.md.
//
// The sub-allocator hands out addresses that nothing ever touches, the lowest (or highest) free
// range that fits, and counts whole pages of 2 MiB against a capacity.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "xla/tsl/framework/bfc_allocator.h"

namespace {

constexpr uint64_t kPage = uint64_t{2} << 20;
constexpr uint64_t kBottom = uint64_t{1} << 45;
constexpr uint64_t kTop = uint64_t{1} << 46;
constexpr uint64_t kMiB = uint64_t{1} << 20;

enum class Order { kAscending, kDescending };

class Device : public tsl::SubAllocator {
 public:
  Device(uint64_t capacity, Order order, bool coalesce)
      : SubAllocator({}, {}), capacity_(capacity), order_(order), coalesce_(coalesce) {}

  void* Alloc(size_t, size_t bytes, size_t* received) override {
    const uint64_t size = (bytes + kPage - 1) / kPage * kPage;
    if (capacity_ != 0 && used_ + size > capacity_) return nullptr;
    std::vector<std::pair<uint64_t, uint64_t>> holes;
    uint64_t from = kBottom;
    for (const auto& [start, length] : taken_) {
      holes.emplace_back(from, start);
      from = start + length;
    }
    holes.emplace_back(from, kTop);
    if (order_ == Order::kDescending) std::reverse(holes.begin(), holes.end());
    for (const auto& [start, end] : holes) {
      if (end - start < size) continue;
      const uint64_t address = order_ == Order::kAscending ? start : end - size;
      taken_[address] = size;
      used_ += size;
      *received = bytes;
      return reinterpret_cast<void*>(address);
    }
    return nullptr;
  }

  // A coalesced region comes back in one piece.
  void Free(void* pointer, size_t bytes) override {
    ++frees;
    const uint64_t start = reinterpret_cast<uint64_t>(pointer);
    auto it = taken_.find(start);
    while (it != taken_.end() && it->first < start + bytes) {
      used_ -= it->second;
      it = taken_.erase(it);
    }
  }

  bool SupportsCoalescing() const override { return coalesce_; }

  uint64_t frees = 0;

 private:
  const uint64_t capacity_;
  const Order order_;
  const bool coalesce_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> taken_;
};

struct Settings {
  const char* name;
  uint64_t limit;
  uint64_t capacity;  // 0: none
  Order order;
  bool coalesce;
  bool growth;
  bool collect;
  double fragmentation;
  const char* sizes;
  int requests;
};

uint64_t Size(const char* kind, int wave, std::mt19937_64& random) {
  const auto in = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  switch (kind[0]) {
    case 's':  // small
      return in(1, 20000);
    case 'l':  // large
      return in(1, 8) == 1 ? in(100 * kMiB, 400 * kMiB) : in(4 * kMiB, 80 * kMiB);
    case 'w':  // waves: each larger than the one before, up to 64 times
      return in(uint64_t{300000} << wave % 7, uint64_t{2} * kMiB << wave % 7);
    case 'e':  // edges: powers of two and their neighbours, a few sizes again and again
      return (uint64_t{256} << in(0, 19)) + in(0, 2) - 1;
    default:  // mixed; nothing that a full device would be asked for without end
      switch (in(0, 3)) {
        case 0: return in(4096, 65536);
        case 1: return in(65536, kMiB);
        case 2: return in(kMiB, 8 * kMiB);
        default: return in(8 * kMiB, 48 * kMiB);
      }
  }
}

}  // namespace

namespace tsl {
// The name that BFCAllocator lets see its private parts.
class GPUBFCAllocatorPrivateMethodsTest {
 public:
  static std::string State(BFCAllocator& allocator, bool layout) {
    const auto stats = *allocator.GetStats();
    std::ostringstream out;
    out << stats.bytes_in_use << ',' << stats.peak_bytes_in_use << ',' << stats.largest_alloc_size
        << ',' << stats.num_allocs << ',' << *stats.pool_bytes << ',' << *stats.peak_pool_bytes
        << ',' << allocator.curr_region_allocation_bytes_;
    if (!layout) return out.str();
    out << ",[";
    bool first = true;
    for (const auto& region : allocator.region_manager_.regions()) {
      out << (first ? "" : ",") << '[' << Offset(region.ptr()) << ',' << region.memory_size();
      first = false;
      for (auto h = region.get_handle(region.ptr()); h != BFCAllocator::kInvalidChunkHandle;) {
        const auto* chunk = allocator.ChunkFromHandle(h);
        out << ',' << (chunk->in_use() ? "" : "-") << chunk->size;
        h = chunk->next;
      }
      out << ']';
    }
    out << ']';
    return out.str();
  }

  static int64_t Offset(const void* pointer) {
    return static_cast<int64_t>(reinterpret_cast<uint64_t>(pointer));
  }
};
}  // namespace tsl

namespace {

using Peek = tsl::GPUBFCAllocatorPrivateMethodsTest;

void Record(const Settings& s, const std::string& folder, const std::string& suffix) {
  const std::string name = s.name + suffix;
  tsl::BFCAllocator::Options options;
  options.allow_growth = s.growth;
  options.allow_retry_on_failure = false;
  options.garbage_collection = s.collect;
  options.fragmentation_fraction = s.fragmentation;
  auto owned = std::make_unique<Device>(s.capacity, s.order, s.coalesce);
  const Device& device = *owned;
  tsl::BFCAllocator allocator(std::move(owned), s.limit, name, options);
  tsl::AllocationAttributes attributes;
  attributes.retry_on_failure = false;

  std::mt19937_64 random(std::hash<std::string>{}(name));
  std::ofstream out(folder + "/" + name + ".json");
  out << "{\"tensorflow\":\"" << TENSORFLOW << "\",\"limit\":" << s.limit
      << ",\"capacity\":" << s.capacity << ",\"order\":\""
      << (s.order == Order::kAscending ? "ascending" : "descending")
      << "\",\"coalesce\":" << (s.coalesce ? "true" : "false")
      << ",\"allow_growth\":" << (s.growth ? "true" : "false")
      << ",\"garbage_collection\":" << (s.collect ? "true" : "false")
      << ",\"fragmentation_fraction\":" << s.fragmentation << ",\n\"steps\":[\n";
  std::vector<std::pair<int, void*>> live;
  uint64_t failures = 0;
  for (int i = 0; i < s.requests; ++i) {
    // Waves of growing, then of shrinking. Those of rising sizes end with nothing in use.
    const int wave = i / 60;
    const bool rising = s.sizes[0] == 'w';
    const bool growing = i % 60 < (rising ? 25 : 35);
    const bool allocate = live.empty() || random() % 100 < (growing ? 80u : rising ? 0u : 5u);
    out << (i == 0 ? "" : ",\n");
    bool failed = false;
    if (allocate) {
      const uint64_t size = Size(s.sizes, wave, random);
      void* pointer = allocator.AllocateRaw(64, size, attributes);
      failed = pointer == nullptr;
      out << "[\"a\"," << i << ',' << size << ',';
      if (failed) {
        out << "null";
        ++failures;
      } else {
        out << Peek::Offset(pointer);
        live.emplace_back(i, pointer);
      }
    } else {
      const size_t which = random() % live.size();
      out << "[\"f\"," << live[which].first << ",0,null";
      allocator.DeallocateRaw(live[which].second);
      live[which] = live.back();
      live.pop_back();
    }
    out << ',' << device.frees << ',' << Peek::State(allocator, failed || i % 5 == 4) << ']';
  }
  for (const auto& [id, pointer] : live) allocator.DeallocateRaw(pointer);
  out << "\n]}\n";
  std::printf("%s: %d requests, %llu failures\n", name.c_str(), s.requests,
              static_cast<unsigned long long>(failures));
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t gib = 1024 * kMiB;
  const auto up = Order::kAscending;
  const auto down = Order::kDescending;
  // name, limit, capacity, order, coalesce, growth, collect, fragmentation, sizes, requests
  const Settings all[] = {
      {"whole_mixed", 300 * kMiB, 0, up, false, false, true, 0, "mixed", 600},
      {"whole_small", 200 * 1024 + 77, 0, up, false, false, true, 0, "small", 900},
      {"whole_large", 2 * gib, 0, down, false, false, true, 0, "large", 600},
      {"whole_edges", 300 * kMiB - 100, 0, up, false, false, true, 0, "edges", 900},
      {"whole_fraction", 300 * kMiB, 0, up, false, false, true, 0.01, "mixed", 600},
      {"whole_fraction_large", 1 * gib, 0, up, false, false, true, 0.003, "large", 600},
      {"whole_refused", 1000 * kMiB, 220 * kMiB, up, false, false, true, 0, "mixed", 600},
      {"whole_refused_kept", 1000 * kMiB, 230 * kMiB, down, false, false, false, 0, "mixed", 600},
      {"whole_refused_far", 7 * gib + 12345 * 256, 151 * kMiB, up, false, false, true, 0, "mixed", 300},
      {"whole_refused_farther", 90 * gib + 777, 99 * kMiB, down, false, false, false, 0, "mixed", 300},
      {"growth_mixed", 400 * kMiB, 0, up, false, true, true, 0, "mixed", 600},
      {"growth_mixed_down", 350 * kMiB, 0, down, false, true, true, 0, "mixed", 600},
      {"growth_mixed_kept", 400 * kMiB, 0, up, false, true, false, 0, "mixed", 600},
      {"growth_small", 40 * kMiB, 0, up, false, true, true, 0, "small", 900},
      {"growth_small_tight", 150 * 1024 + 77, 0, down, false, true, true, 0, "small", 900},
      {"growth_tiny_limit", 100 * 1024 + 5, 0, up, false, true, true, 0, "small", 600},
      {"growth_large", 1 * gib + 100 * kMiB, 0, up, false, true, true, 0, "large", 600},
      {"growth_large_down", 2 * gib, 0, down, false, true, true, 0, "large", 600},
      {"growth_edges", 300 * kMiB - 100, 0, up, false, true, true, 0, "edges", 900},
      {"growth_edges_down", 400 * kMiB + 1, 0, down, false, true, true, 0, "edges", 900},
      {"growth_edges_kept", 400 * kMiB + 1, 0, up, false, true, false, 0, "edges", 900},
      {"growth_fraction", 220 * kMiB, 0, up, false, true, true, 0.005, "mixed", 600},
      {"growth_fraction_large", 1 * gib + 999, 0, down, false, true, true, 0.02, "large", 600},
      {"growth_refused", 2000 * kMiB, 260 * kMiB, up, false, true, true, 0, "mixed", 600},
      {"growth_refused_down", 2000 * kMiB, 301 * kMiB, down, false, true, true, 0, "mixed", 600},
      {"growth_refused_kept", 2000 * kMiB, 403 * kMiB, up, false, true, false, 0, "mixed", 600},
      {"growth_refused_large", 9 * gib, 2 * gib, down, false, true, true, 0, "large", 600},
      {"whole_waves_refused", 1000 * kMiB, 500 * kMiB, down, false, false, true, 0, "waves", 900},
      {"growth_waves", 900 * kMiB, 0, up, false, true, true, 0, "waves", 900},
      {"growth_waves_down", 500 * kMiB, 0, down, false, true, true, 0, "waves", 900},
      {"growth_waves_kept", 900 * kMiB, 0, up, false, true, false, 0, "waves", 900},
      {"growth_waves_refused", 3 * gib, 777 * kMiB, up, false, true, true, 0, "waves", 900},
      {"coalesced_waves", 900 * kMiB, 0, up, true, true, true, 0, "waves", 900},
      {"coalesced_waves_down", 600 * kMiB, 0, down, true, true, true, 0, "waves", 900},
      {"coalesced_waves_refused", 3 * gib, 350 * kMiB, up, true, true, true, 0, "waves", 900},
      {"coalesced_mixed", 250 * kMiB, 0, up, true, true, true, 0, "mixed", 600},
      {"coalesced_down", 250 * kMiB, 0, down, true, true, true, 0, "mixed", 600},
      {"coalesced_small", 40 * kMiB, 0, up, true, true, true, 0, "small", 900},
      {"coalesced_large", 1 * gib, 0, up, true, true, true, 0, "large", 600},
      {"coalesced_edges", 400 * kMiB + 1, 0, up, true, true, true, 0, "edges", 900},
      {"coalesced_refused", 2000 * kMiB, 260 * kMiB, up, true, true, true, 0, "mixed", 600},
      {"coalesced_kept", 250 * kMiB, 0, up, true, true, false, 0, "mixed", 600},
  };
  for (const Settings& settings : all) Record(settings, argv[1], argc > 2 ? argv[2] : "");
}
