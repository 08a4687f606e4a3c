// The functions that a loaded library calls by its table (ELF, `R_*_JUMP_SLOT` and `R_*_GLOB_DAT`).
#define _GNU_SOURCE
#include "cpu.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT };
#endif

struct wanted {
    const char *library;
    const char *const *names;
    void *const *functions;
    int count;
    int replaced; // bits of the names
};

// The sections of a loaded library that are needed here.
struct sections {
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Rela) *tables[2];
    size_t bytes[2];
};

static struct sections sections_of(const struct dl_phdr_info *library) {
    struct sections sections = {0};
    for (int header = 0; header < library->dlpi_phnum; header++) {
        if (library->dlpi_phdr[header].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[header].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            // glibc has added the base of the library.
            const void *at = (const void *)entry->d_un.d_ptr;
            switch (entry->d_tag) {
            case DT_SYMTAB: sections.symbols = at; break;
            case DT_STRTAB: sections.strings = at; break;
            case DT_JMPREL: sections.tables[0] = at; break;
            case DT_RELA: sections.tables[1] = at; break;
            case DT_PLTRELSZ: sections.bytes[0] = entry->d_un.d_val; break;
            case DT_RELASZ: sections.bytes[1] = entry->d_un.d_val; break;
            }
        }
    }
    return sections;
}

// Whether the loader has made an address of the library read-only once its table was complete.
static bool is_read_only(const struct dl_phdr_info *library, uint64_t address) {
    for (int header = 0; header < library->dlpi_phnum; header++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[header];
        if (segment->p_type == PT_GNU_RELRO && address - library->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

static bool write_entry(const struct dl_phdr_info *library, uint64_t address, void *function) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)(address / page * page);
    bool protect = is_read_only(library, address);
    if (protect && mprotect(start, page, PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n((void **)address, function, __ATOMIC_RELEASE);
    if (protect)
        mprotect(start, page, PROT_READ);
    return true;
}

static int replace_in(struct dl_phdr_info *library, size_t size, void *data) {
    (void)size;
    struct wanted *wanted = data;
    const char *name = strrchr(library->dlpi_name, '/');
    if (strcmp(name ? name + 1 : library->dlpi_name, wanted->library))
        return 0;
    struct sections sections = sections_of(library);
    for (int table = 0; table < 2 && sections.symbols && sections.strings; table++)
        for (size_t at = 0; sections.tables[table] && at < sections.bytes[table] / sizeof(ElfW(Rela)); at++) {
            const ElfW(Rela) *entry = &sections.tables[table][at];
            unsigned type = (unsigned)ELF64_R_TYPE(entry->r_info);
            if (type != SLOT && type != DATA)
                continue;
            const char *symbol = sections.strings + sections.symbols[ELF64_R_SYM(entry->r_info)].st_name;
            for (int which = 0; which < wanted->count; which++)
                if (!strcmp(symbol, wanted->names[which])
                    && write_entry(library, library->dlpi_addr + entry->r_offset, wanted->functions[which]))
                    wanted->replaced |= 1 << which;
        }
    return 1;
}

// Replaces what a library, by the name of its file, calls. Returns the number of names that were found.
int table_replace(const char *library, const char *const *names, void *const *functions, int count) {
    struct wanted wanted = {library, names, functions, count, 0};
    dl_iterate_phdr(replace_in, &wanted);
    return __builtin_popcount((unsigned)wanted.replaced);
}
