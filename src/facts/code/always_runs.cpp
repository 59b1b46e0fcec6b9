// SPDX-License-Identifier: Apache-2.0
#include "facts/code/always_runs.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>

#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr uint64_t kInit = 12, kInitArray = 25, kInitArraySize = 27;  // DT_INIT…
constexpr uint64_t kMaxConstructors = 64;
constexpr int kMaxInstructions = 400;   // in one beginning
constexpr int kMaxDecoded = 4000;       // in one file
constexpr int kStartInstructions = 24;  // _start of crt1 has about a dozen
constexpr size_t kLongest = 15;

/// The lowest level of processors that have this instruction; 0 if all have it. LZCNT and TZCNT do
/// not count: an older processor executes them as BSR and BSF, and compilers rely on that.
uint32_t level_of(const ZydisDecodedInstruction& instruction) {
  bool older_takes_it =
      instruction.mnemonic == ZYDIS_MNEMONIC_LZCNT || instruction.mnemonic == ZYDIS_MNEMONIC_TZCNT;
  if (older_takes_it) return 0;
  switch (instruction.meta.isa_ext) {
    case ZYDIS_ISA_EXT_AVX512EVEX:
    case ZYDIS_ISA_EXT_AVX512VEX:
      return 4;
    case ZYDIS_ISA_EXT_AVX:
    case ZYDIS_ISA_EXT_AVX2:
    case ZYDIS_ISA_EXT_AVX2GATHER:
    case ZYDIS_ISA_EXT_BMI1:
    case ZYDIS_ISA_EXT_BMI2:
    case ZYDIS_ISA_EXT_F16C:
    case ZYDIS_ISA_EXT_FMA:
    case ZYDIS_ISA_EXT_MOVBE:
      return 3;
    case ZYDIS_ISA_EXT_SSE3:
    case ZYDIS_ISA_EXT_SSSE3:
    case ZYDIS_ISA_EXT_SSE4:
      return 2;
    default:
      return instruction.meta.isa_set == ZYDIS_ISA_SET_POPCNT ? 2 : 0;
  }
}

class Code {
 public:
  Code(const scan::ElfFile& elf, const scan::ReadAt& read_at) : elf_(elf), file_(read_at) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  uint32_t level_from(uint64_t address);
  /// The first argument that _start passes to __libc_start_main.
  std::optional<uint64_t> find_main();
  std::vector<uint64_t> constructors();

 private:
  struct Step {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  };
  std::optional<Step> decode(uint64_t address);
  static std::optional<uint64_t> target_of(const Step& step, size_t operand, uint64_t address);

  const scan::ElfFile& elf_;
  Window file_;
  ZydisDecoder decoder_;
  int decoded_ = 0;
};

std::optional<Code::Step> Code::decode(uint64_t address) {
  auto offset = elf_.file_offset(address);
  if (!offset || ++decoded_ > kMaxDecoded) return std::nullopt;
  auto bytes = file_.read(*offset, kLongest);
  Step step;
  bool whole =
      bytes.ok() && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, bytes->data(), bytes->size(),
                                                        &step.instruction, step.operands.data()));
  return whole ? std::optional<Step>(step) : std::nullopt;
}

/// The address that an operand names, absolute or relative to the instruction.
std::optional<uint64_t> Code::target_of(const Step& step, size_t operand, uint64_t address) {
  ZyanU64 target = 0;
  bool known = ZYAN_SUCCESS(
      ZydisCalcAbsoluteAddress(&step.instruction, &step.operands[operand], address, &target));
  return known ? std::optional<uint64_t>(target) : std::nullopt;
}

uint32_t Code::level_from(uint64_t address) {
  uint32_t level = 0;
  for (int i = 0; i < kMaxInstructions; ++i) {
    auto step = decode(address);
    if (!step) break;
    const ZydisDecodedInstruction& instruction = step->instruction;
    bool asks = instruction.mnemonic == ZYDIS_MNEMONIC_CPUID ||
                instruction.mnemonic == ZYDIS_MNEMONIC_XGETBV;
    bool ends = asks || instruction.meta.category == ZYDIS_CATEGORY_COND_BR ||
                instruction.meta.category == ZYDIS_CATEGORY_RET ||
                instruction.meta.category == ZYDIS_CATEGORY_INTERRUPT ||
                instruction.mnemonic == ZYDIS_MNEMONIC_HLT ||
                instruction.mnemonic == ZYDIS_MNEMONIC_UD2;
    if (ends) break;
    level = std::max(level, level_of(instruction));
    uint64_t next = address + instruction.length;
    if (instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
      bool direct = step->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
      auto target = direct ? target_of(*step, 0, address) : std::nullopt;
      if (!target) break;
      next = *target;
    }
    address = next;
  }
  return level;
}

std::optional<uint64_t> Code::find_main() {
  std::optional<uint64_t> main;
  uint64_t address = elf_.entry;
  for (int i = 0; i < kStartInstructions; ++i) {
    auto step = decode(address);
    if (!step) return std::nullopt;
    const ZydisDecodedInstruction& instruction = step->instruction;
    if (instruction.meta.category == ZYDIS_CATEGORY_CALL) return main;
    if (instruction.meta.category == ZYDIS_CATEGORY_COND_BR) return std::nullopt;
    const ZydisDecodedOperand& to = step->operands[0];
    bool first_argument =
        to.type == ZYDIS_OPERAND_TYPE_REGISTER &&
        (to.reg.value == ZYDIS_REGISTER_RDI || to.reg.value == ZYDIS_REGISTER_EDI);
    if (first_argument && instruction.mnemonic == ZYDIS_MNEMONIC_LEA) {
      main = target_of(*step, 1, address);
    } else if (first_argument && instruction.mnemonic == ZYDIS_MNEMONIC_MOV &&
               step->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      main = step->operands[1].imm.value.u;
    }
    address += instruction.length;
  }
  return std::nullopt;
}

std::vector<uint64_t> Code::constructors() {
  std::vector<uint64_t> found;
  auto init = elf_.dynamic_value(kInit), array = elf_.dynamic_value(kInitArray);
  uint64_t size = elf_.dynamic_value(kInitArraySize).value_or(0);
  if (init) found.push_back(*init);
  for (const scan::ElfSection& section : elf_.sections) {
    if (array || section.name != ".init_array") continue;  // a static program has no DT_INIT_ARRAY
    array = section.address;
    size = section.size;
  }
  if (!array) return found;
  uint64_t count = std::min(size / 8, kMaxConstructors);
  for (uint64_t i = 0; i < count; ++i) {
    auto offset = elf_.file_offset(*array + 8 * i);
    if (!offset) break;
    auto bytes = file_.need(*offset, 8, "ELF: constructors");
    if (!bytes.ok()) break;
    // The address is zero if a relocation fills it in.
    if (uint64_t address = number_at(*bytes, 0, 8); address != 0) found.push_back(address);
  }
  return found;
}

}  // namespace

uint32_t level_of_code(const scan::ElfFile& elf, const scan::ReadAt& read_at) {
  if (elf.machine != scan::kMachineX86_64 || elf.elf_class != scan::ElfClass::elf64) return 0;
  Code code(elf, read_at);
  std::vector<uint64_t> beginnings = code.constructors();
  if (auto main = code.find_main()) beginnings.push_back(*main);
  uint32_t level = 0;
  for (uint64_t address : beginnings) level = std::max(level, code.level_from(address));
  return level;
}

}  // namespace berth::facts
