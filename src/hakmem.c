// hakmem.c -- the order things come up in; the only file that sees all layers.
#include "hakmem/hakmem.h"
#include "cache/dying.h"
#include "cache/nested.h"
#include "cache/start.h"
#include "front/environment.h"
#include "front/figures.h"
#include "front/replaced.h"
#include "front/site_rules.h"
#include "front/staying.h"
#include "os/heard.h"
#include "policy/experiment.h"
#include "policy/relief.h"
#include "policy/tuner.h"

const char *hak_version(void)
{
    return HAKMEM_VERSION;
}

// All else comes up with the first allocation, which is earlier (cache/start.c). The options should
// stand before anybody uses the heap: the library is linked to be initialised first (-z initfirst),
// before the C library sets `environ`, so its constructors get the environment as an argument; and
// in a program that the archive is linked into, this constructor has the first priority.
__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    hak_dying_start();
    hak_environment_read(environment);
    hak_heard_start(hak_nested_begin, hak_nested_end);
    hak_start_process();
    hak_staying_start();
    hak_replaced_start();
    hak_site_rules_read();
    hak_relief_start();
    hak_tuner_start();
    hak_experiment_start();
}

// What is wrong with the blocks in the magazines shows when they go back to their slabs: now at
// the latest.
__attribute__((destructor(101))) static void stop(void)
{
    hak_figures_report();
    hak_stop_process();
}
