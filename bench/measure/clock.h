// clock.h -- the one clock that all of measure uses.
#ifndef MEASURE_CLOCK_H
#define MEASURE_CLOCK_H

// Seconds since some fixed moment; never goes back.
double clock_seconds(void);

#endif
