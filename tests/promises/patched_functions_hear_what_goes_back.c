// sleeps
// not tagged: it compares addresses, which have tags there
// A library that writes a jump over the first instructions of the C library's munmap, madvise and mremap, as UCX and libfabric do,
// hears of all memory that goes back.
#include "../support/listener.h"

static void patch(const char *name, uintptr_t to)
{
#if defined(__x86_64__)
    unsigned char jump[13] = {
        0x49, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xFF, 0xE3}; // by way of %r11
    memcpy(jump + 2, &to, sizeof to);
#else
    unsigned char jump[16] = {
        0x51, 0, 0, 0x58, 0x20, 0x02, 0x1F, 0xD6}; // ldr x17, 8 bytes further; br x17
    memcpy(jump + 8, &to, sizeof to);
#endif
    char *function = dlsym(RTLD_DEFAULT, name);
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *page = (char *)((uintptr_t)function & ~(page_bytes - 1));
    HT_CHECK(function != NULL, "there is no %s", name);
    if (mprotect(page, 2 * page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        HT_SKIP("nobody may write to code here");
    }
    memcpy(function, jump, sizeof jump);
    __builtin___clear_cache(function, function + sizeof jump);
}

int main(void)
{
    ht_start();
    patch("munmap", (uintptr_t)lt_munmap);
    patch("madvise", (uintptr_t)lt_madvise);
    patch("mremap", (uintptr_t)lt_mremap);
    lt_check();
    return 0;
}
