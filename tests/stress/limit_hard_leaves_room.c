// args: 16 8000 1
// env: HAKMEM_LIMIT_HARD=85M HAKMEM_ARENA_SHARDS=8
//
// 5 MiB below limit_hard.
#include "../support/room.h"

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    ht_room_run(&stress, 0);
    return 0;
}
