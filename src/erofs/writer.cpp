// SPDX-License-Identifier: Apache-2.0
#include "erofs/writer.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "erofs/format.hpp"
#include "sys/file/file.hpp"

namespace berth::erofs {
namespace {

constexpr const char* kOutputName = "image";

constexpr const char* kWriterName = "image";
constexpr uint64_t kRootAt = kSuperblockAt + sizeof(Superblock);
static_assert(kRootAt % kSlot == 0 && kRootAt / kSlot <= 0xffff);
/// The limit of one write of inodes: one block would be too little, a hundred blocks too much.
constexpr size_t kMaxRecordBlocks = 32;

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::file:
      return S_IFREG;
    case FileType::directory:
      return S_IFDIR;
    case FileType::character_device:
      return S_IFCHR;
    case FileType::block_device:
      return S_IFBLK;
    case FileType::fifo:
      return S_IFIFO;
    case FileType::socket:
      return S_IFSOCK;
    case FileType::symlink:
      return S_IFLNK;
  }
  return 0;
}

/// A device number as Linux encodes it in 32 bits.
uint32_t device_number(unsigned major, unsigned minor) {
  return (minor & 0xff) | major << 8 | (minor & ~0xffu) << 12;
}

}  // namespace

size_t RecordBlocks::best(size_t size) const {
  size_t found = used_.size();
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used_[i] + size > kBlock) continue;
    if (found == used_.size() || used_[i] > used_[found]) found = i;
  }
  return found;
}

bool RecordBlocks::fits(size_t size) const {
  return best(size) < used_.size();
}

uint64_t RecordBlocks::put(std::string_view record) {
  size_t block = best(record.size());
  BERTH_ASSERT(block < used_.size());
  uint64_t at = block * kBlock + used_[block];
  bytes_.replace(at, record.size(), record);
  used_[block] = static_cast<uint32_t>(round_up(used_[block] + record.size(), kSlot));
  return start_ + at;
}

bool RecordBlocks::holds(uint64_t address) const {
  return address >= start_ && address < start_ + bytes_.size();
}

std::string RecordBlocks::read(uint64_t address, size_t length) const {
  return bytes_.substr(address - start_, length);
}

void RecordBlocks::replace(uint64_t address, std::string_view bytes) {
  bytes_.replace(address - start_, bytes.size(), bytes);
}

void RecordBlocks::begin(uint64_t address, size_t count) {
  start_ = address;
  used_.assign(count, 0);
  bytes_.assign(count * kBlock, '\0');
}

Result<void> RecordBlocks::flush() {
  if (bytes_.empty()) return {};
  TRY(sys::write_at(*file_, start_, bytes_, kOutputName));
  bytes_.clear();
  used_.clear();
  return {};
}

Writer::Writer(const sys::Fd& file, const Identity& identity, sys::PieceWriter::Cache cache)
    : file_(&file), identity_(identity), data_(cache), records_(file) {
  data_.begin(file, kWriterName);
}

/// Allocates whole, consecutive blocks; returns the address of the first.
Result<uint64_t> Writer::allocate(uint64_t size) {
  constexpr uint64_t kMaxImage = uint64_t{kNoBlock} * kBlock;
  if (size > kMaxImage - end_) {
    return make_error(Kind::unsupported, "an EROFS image can be at most 16 TiB");
  }
  uint64_t address = end_;
  end_ = std::min(round_up(end_ + size, kBlock), kMaxImage);
  return address;
}

Result<uint64_t> Writer::put_record(const std::string& record) {
  if (record.size() > kBlock) {
    uint64_t address = TRY(allocate(record.size()));
    TRY(sys::write_at(*file_, address, record,
                      kWriterName));  // not through data_: write_links() may change it later
    return address;
  }
  if (!records_.fits(record.size())) {
    TRY(records_.flush());
    uint64_t address = TRY(allocate(record_blocks_ * kBlock));
    records_.begin(address, record_blocks_);
    record_blocks_ = std::min(record_blocks_ * 2, kMaxRecordBlocks);
  }
  return records_.put(record);
}

Result<std::shared_ptr<Node>> Writer::put_node(FileType type, const std::string& record) {
  auto node = std::make_shared<Node>();
  node->type = type;
  node->address = TRY(put_record(record));
  return node;
}

DiskInode Writer::inode(const Facts& facts, FileType type, size_t attributes) {
  DiskInode inode;
  inode.format = inode_format(Layout::blocks);
  inode.where = kNoBlock;
  if (attributes != 0) {
    inode.attributes = static_cast<uint16_t>((attributes - sizeof(AttributesHeader)) / 4 + 1);
  }
  inode.mode = static_cast<uint16_t>(type_bits(type) | (facts.mode & 07777));
  inode.number = ++last_number_;
  inode.uid = facts.uid;
  inode.gid = facts.gid;
  inode.modified = facts.modified;
  inode.modified_nanoseconds = facts.modified_nanoseconds;
  inode.links = 1;
  return inode;
}

Result<void> Writer::copy_content(uint64_t address, uint64_t size, const Content& content) {
  uint64_t end = address + size;
  while (true) {
    Part part = TRY(content());
    if (part.hole > end - address || part.bytes.size() > end - address - part.hole) {
      return make_error(Kind::bug, "a file is longer than it was");
    }
    address += part.hole;
    if (part.bytes.empty()) break;
    TRY(data_.write(address, part.bytes));
    address += part.bytes.size();
  }
  if (address != end) return make_error(Kind::bug, "a file is shorter than it was");
  return {};
}

Result<Writer::File> Writer::add_file(const Facts& facts, const Attributes& attributes,
                                      uint64_t size, const Content& content) {
  DiskInode inode = this->inode(facts, FileType::file, attributes.bytes().size());
  inode.size = size;
  size_t head = sizeof inode + attributes.bytes().size();
  bool is_small = size > 0 && size < kBlock && head + size <= kBlock;
  if (!is_small) {
    uint64_t address = TRY(allocate(size));
    if (size > 0) inode.where = static_cast<uint32_t>(address / kBlock);
    TRY(copy_content(address, size, content));
    std::string record(struct_bytes(inode));
    auto node = TRY(put_node(FileType::file, record + attributes.bytes()));
    return File{std::move(node), address};
  }
  inode.format = inode_format(Layout::tail);
  std::string record(struct_bytes(inode));
  record += attributes.bytes();
  while (true) {
    Part part = TRY(content());
    if (part.hole > kBlock) return make_error(Kind::bug, "a file is longer than it was");
    record.append(part.hole, '\0');
    record += part.bytes;
    if (part.bytes.empty()) break;
  }
  if (record.size() != head + size) return make_error(Kind::bug, "a file has another size");
  auto node = TRY(put_node(FileType::file, record));
  uint64_t address = node->address + head;
  return File{std::move(node), address};
}

Result<std::shared_ptr<Node>> Writer::add_symlink(const Facts& facts, std::string_view target) {
  DiskInode inode = this->inode(facts, FileType::symlink, 0);
  inode.size = target.size();
  bool is_short = sizeof inode + target.size() <= kBlock;
  if (is_short) {
    inode.format = inode_format(Layout::tail);
  } else {
    uint64_t address = TRY(allocate(target.size()));
    inode.where = static_cast<uint32_t>(address / kBlock);
    TRY(data_.write(address, target));
  }
  std::string record(struct_bytes(inode));
  if (is_short) record += target;
  return put_node(FileType::symlink, record);
}

Result<std::shared_ptr<Node>> Writer::add_special(const Facts& facts, FileType type, unsigned major,
                                                  unsigned minor) {
  DiskInode inode = this->inode(facts, type, 0);
  inode.where = device_number(major, minor);
  return put_node(type, std::string(struct_bytes(inode)));
}

Result<std::string> Writer::read(uint64_t address, size_t length) {
  if (records_.holds(address)) return records_.read(address, length);
  return data_.read(address, length);
}

Result<std::string> Writer::read_link(const Node& symlink) {
  std::string record = TRY(read(symlink.address, sizeof(DiskInode)));
  DiskInode inode;
  if (record.size() != sizeof inode) return make_error(Kind::io, "read back a symbolic link");
  std::memcpy(&inode, record.data(), sizeof inode);
  bool is_short = inode.format == inode_format(Layout::tail);
  uint64_t at = is_short ? symlink.address + sizeof inode : inode.where * kBlock;
  return read(at, inode.size);
}

/// Lists the directories, parents first, and counts the names of all other nodes.
Result<void> Writer::count_links(Directory& directory, std::vector<Plan>& plans) {
  size_t own = plans.size();
  plans.push_back({&directory});
  ++inodes_;
  for (auto& [name, node] : directory.children) {
    if (Directory* below = as_directory(node.get())) {
      ++plans[own].subdirectories;
      TRY(count_links(*below, plans));
      continue;
    }
    ++node->links;
    if (node->links == 1) ++inodes_;
    if (node->links == 2) linked_.push_back(node.get());
  }
  return {};
}

/// Decides whether the last block of a directory goes behind its inode, and so the size of the
/// record.
Result<void> Writer::place(Plan& plan) {
  uint64_t blocks = 0;
  size_t last = 0;
  TRY(for_each_block(*plan.directory, [&](const auto&, size_t size) -> Result<void> {
    ++blocks;
    last = size;
    return {};
  }));
  plan.size = (blocks - 1) * kBlock + last;
  bool is_root = plan.directory->parent == nullptr;
  size_t room = is_root ? kBlock - kRootAt : kBlock;
  size_t head = sizeof(DiskInode) + plan.directory->attributes.bytes().size();
  // A full block is never stored as a tail.
  if (last < kBlock && head + last <= room) plan.layout = Layout::tail;
  if (is_root) {
    plan.directory->address = kRootAt;
    return {};
  }
  size_t record = plan.layout == Layout::tail ? head + last : head;
  uint64_t left = (kBlock - end_ % kBlock) % kBlock;
  if (record > left) end_ += left;
  plan.directory->address = end_;
  end_ = round_up(end_ + record, kSlot);
  return {};
}

/// All numbers are assigned before the first directory is written: parents and children refer to
/// each other.
Result<void> Writer::place_all(std::vector<Plan>& plans) {
  for (Plan& plan : plans) TRY(place(plan));
  end_ = round_up(end_, kBlock);
  for (Plan& plan : plans) {
    uint64_t outside =
        plan.layout == Layout::tail ? plan.size / kBlock * kBlock : round_up(plan.size, kBlock);
    plan.blocks_at = TRY(allocate(outside));
  }
  return {};
}

Result<void> Writer::write_directory(const Plan& plan, sys::PieceWriter& inodes) {
  const Directory& directory = *plan.directory;
  const std::string& attributes = directory.attributes.bytes();
  DiskInode inode = this->inode(directory.facts, FileType::directory, attributes.size());
  inode.format = inode_format(plan.layout);
  inode.size = plan.size;
  inode.links = 2 + plan.subdirectories;
  bool outside = plan.layout == Layout::blocks || plan.size >= kBlock;
  if (outside) inode.where = static_cast<uint32_t>(plan.blocks_at / kBlock);
  std::string record(struct_bytes(inode));
  record += attributes;

  uint64_t done = 0;
  auto put_block = [&](const auto& entries, size_t) -> Result<void> {
    bool is_last = plan.size - done <= kBlock;
    std::string block = encode_block(entries);
    if (is_last && plan.layout == Layout::tail) {
      record += block;
      return {};
    }
    block.resize(kBlock, '\0');
    done += kBlock;
    return data_.write(plan.blocks_at + done - kBlock, block);
  };
  TRY(for_each_block(directory, put_block));
  if (directory.parent != nullptr) return inodes.write(directory.address, record);
  root_record_ = std::move(record);
  return {};
}

/// Corrects the link counts of files with several names, which were not known when the files were
/// written.
Result<void> Writer::write_links() {
  for (const Node* node : linked_) {
    uint64_t at = node->address + offsetof(DiskInode, links);
    if (records_.holds(at)) {
      records_.replace(at, struct_bytes(node->links));
    } else {
      TRY(sys::write_at(*file_, at, struct_bytes(node->links), "image"));
    }
  }
  return records_.flush();
}

Result<void> Writer::write_first_block() {
  Superblock superblock;
  superblock.root = kRootAt / kSlot;
  superblock.inodes = inodes_;
  superblock.build_time = static_cast<uint64_t>(identity_.build_time);
  superblock.blocks = static_cast<uint32_t>(end_ / kBlock);
  superblock.uuid = identity_.uuid;
  std::string block(kBlock, '\0');
  block.replace(kRootAt, root_record_.size(), root_record_);
  block.replace(kSuperblockAt, sizeof superblock, struct_bytes(superblock));
  superblock.checksum = checksum(std::string_view(block).substr(kSuperblockAt));
  block.replace(kSuperblockAt, sizeof superblock, struct_bytes(superblock));
  return sys::write_at(*file_, 0, block, "image");
}

Result<void> Writer::finish(Directory& root) {
  if (root.attributes.bytes().size() > kMaxRootAttributes) {
    return make_error(Kind::unsupported, "the attributes of the root are too long for an image");
  }
  std::vector<Plan> plans;
  TRY(count_links(root, plans));
  TRY(place_all(plans));
  sys::PieceWriter inodes;
  inodes.begin(*file_, kWriterName);
  for (const Plan& plan : plans) TRY(write_directory(plan, inodes));
  TRY(inodes.flush());
  TRY(data_.flush());
  TRY(write_links());
  TRY(sys::truncate(*file_, end_, "image"));
  // Last, because without a superblock the file is not an image.
  return write_first_block();
}

}  // namespace berth::erofs
