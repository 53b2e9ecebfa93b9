// refuse.c -- see refuse.h.
#include "cache/refuse.h"

#include <errno.h>

#include "cache/hooks.h"

void *hak_refuse(enum hak_refuse_reason reason, struct hak_request request)
{
    hak_hook_refused(reason, request, 0);
    errno = ENOMEM;
    return NULL;
}

void *hak_refuse_memory(struct hak_request request, uint64_t mark)
{
    hak_hook_refused(HAK_REFUSE_MEMORY, request, mark);
    errno = ENOMEM;
    return NULL;
}
