// expect: hakmem: overflow: byte 10 of 0x[0-9a-f]+, a block of 10 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
#include "../support/api.h"
#include "../support/misuse.h"

int main(void)
{
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    struct hak_heap *heap = api_hak_heap_create();
    char *block = ht_hide(api_hak_heap_malloc(heap, 10));
    block[10] = 1;
    api_hak_heap_destroy(heap);
    _exit(0);
}
