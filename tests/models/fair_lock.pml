// The lock of slow paths is fair: os/lock.h, os/lock.c.
//
// Two threads take it again and again. A thread that waits gets it after a while, if each thread gets a processor now
// and then, however fast the other one is. (lock.pml checks the memory order; here every step is visible to all
// at once.)
//
// long search
// mutant: NO_NUMBERS      no thread draws a number: threads that come take the lock before the one that was woken
// mutant: SLEEPERS_SLEEP  while there are numbers, a thread that sleeps on the word is not woken
// mutant: LAST_FIRST      the last number drawn has its turn first
#if defined(SLEEPERS_SLEEP) || defined(LAST_FIRST)
#    define THREADS 3
#else
#    define THREADS 2
#endif
#define HELD 1
#define WAITED 2
#define ONE_DRAWN 4
#define TRIES 1
#define NUMBERS (THREADS + 1) // they wrap around

byte word;
byte drawn;
byte served; // whose turn comes next
byte turn = NUMBERS; // whose turn it is, until that thread has seen it
byte holder = THREADS;
bool waits[THREADS];
bool sleeps[THREADS];
chan queue = [THREADS] of { byte }; // threads that sleep on the word, in the order of their arrival

ltl served_in_time { [](waits[0] -> <>(holder == 0)) }

inline sleep_while(is)
{
    atomic {
        if
        :: word == is -> sleeps[me] = true; queue!me
        :: else
        fi
    }
    !sleeps[me]
}

inline wake()
{
    atomic {
        if
        :: len(queue) > 0 -> queue?other; sleeps[other] = false; other = 0
        :: else
        fi
    }
}

inline serve_next()
{
    atomic {
#ifdef LAST_FIRST
        turn = (drawn + NUMBERS - 1) % NUMBERS;
        if
        :: turn != served -> // from now on the first thread's number is another one's
            drawn = (drawn + NUMBERS - 1) % NUMBERS
        :: else -> served = (served + 1) % NUMBERS
        fi
#else
        turn = served;
        served = (served + 1) % NUMBERS
#endif
    }
}

active [THREADS] proctype thread()
{
    byte me = _pid, seen, rounds, other, number;
    bool is_mine, is_marked;
    do
    :: true ->
        waits[me] = true;
        atomic {
            is_mine = (word == 0);
            if
            :: is_mine -> word = HELD
            :: else
            fi
        }
        do
        :: is_mine -> break
        :: !is_mine && rounds == TRIES ->
            word = word | WAITED;
            atomic { number = drawn; drawn = (drawn + 1) % NUMBERS }
            word = word + ONE_DRAWN;
            do
            :: turn == number -> break
            :: turn != number && (word & HELD) == 0 -> // one of the threads that see it free
                atomic {
                    if
                    :: (word & HELD) == 0 -> word = word | HELD; is_mine = true
                    :: else
                    fi
                }
                if
                :: is_mine -> is_mine = false; serve_next()
                :: else
                fi
            od;
            turn = NUMBERS;
            word = word - ONE_DRAWN;
            is_mine = true
        :: !is_mine && rounds < TRIES ->
            seen = word;
            is_marked = (seen & (HELD | WAITED)) == (HELD | WAITED);
            if
            :: !is_marked ->
                atomic {
                    if
                    :: word == seen -> word = word | HELD | WAITED; is_mine = ((seen & HELD) == 0); is_marked = !is_mine
                    :: else
                    fi
                }
            :: else
            fi;
            if
            :: is_marked -> sleep_while((seen | WAITED))
            :: else
            fi;
            is_marked = false;
#ifndef NO_NUMBERS
            rounds++
#endif
        od;
        holder = me;
        waits[me] = false;
        rounds = 0;
        is_mine = false;
        holder = THREADS;
        atomic {
            if
            :: word == HELD -> word = 0; is_mine = true
            :: else
            fi
        }
        do
        :: is_mine -> break
        :: else ->
            seen = word;
            if
            :: seen >= ONE_DRAWN ->
                serve_next();
#ifndef SLEEPERS_SLEEP
                wake();
#endif
                break
            :: else ->
                atomic {
                    if
                    :: word == seen -> word = 0; is_mine = true
                    :: else
                    fi
                }
                if
                :: is_mine -> wake()
                :: else
                fi
            fi
        od;
        is_mine = false
    od
}
