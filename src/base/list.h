// list.h -- the intrusive, doubly linked list.
//
// A list is a ring through its head; an item in no list points at itself.
#pragma once

#include "base/compiler.h"

struct hak_list {
    struct hak_list *next;
    struct hak_list *prev;
};

#define HAK_LIST_ITEM(link, type, member) \
    ((type *)(void *)((char *)(link) - offsetof(type, member)))

HAK_INLINE void hak_list_start(struct hak_list *list)
{
    list->next = list;
    list->prev = list;
}

HAK_INLINE bool hak_list_is_empty(const struct hak_list *list)
{
    return list->next == list;
}

// Is the item in a list? Or, of a head: is the list not empty?
HAK_INLINE bool hak_list_is_linked(const struct hak_list *item)
{
    return item->next != item;
}

HAK_INLINE void hak_list_push(struct hak_list *list, struct hak_list *item)
{
    item->next = list->next;
    item->prev = list;
    list->next->prev = item;
    list->next = item;
}

HAK_INLINE void hak_list_append(struct hak_list *list, struct hak_list *item)
{
    hak_list_push(list->prev, item);
}

HAK_INLINE void hak_list_remove(struct hak_list *item)
{
    item->next->prev = item->prev;
    item->prev->next = item->next;
    hak_list_start(item);
}
