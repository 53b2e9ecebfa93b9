// args: 16 8000 1
// env: HAKMEM_ARENA_SHARDS=8
// native only
//
// Under an address space limit (RLIMIT_AS), half as much again as the threads hold, since partly used rows of units serve no block
// of 4 MiB: no shard of the arena keeps more to itself.
#include "../support/room.h"

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    ht_room_run(&stress, HT_ROOM_BYTES / 2 * 3);
    return 0;
}
