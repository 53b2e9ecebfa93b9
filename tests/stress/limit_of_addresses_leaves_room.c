// args: 16 8000 1
// env: HAKMEM_ARENA_SHARDS=8
// native only
//
// Below a limit of addresses (RLIMIT_AS), of which superslabs in use keep some apart: no shard of the arena keeps more to itself.
#include "../support/room.h"

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    ht_room_run(&stress, HT_ROOM_BYTES / 4 * 5);
    return 0;
}
