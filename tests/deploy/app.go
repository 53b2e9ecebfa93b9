// Blocks of C's malloc, from four goroutines; then waits until its input ends.
package main

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"fmt"
	"os"
	"sync"
	"unsafe"
)

func work(maker int) (sum int) {
	kept := []unsafe.Pointer{}
	for n := 0; n < 50000; n++ {
		size := 600 + (n*(maker+7))%4400
		block := C.malloc(C.size_t(size))
		C.memset(block, C.int(n%251), C.size_t(size))
		sum += int(*(*byte)(block))
		kept = append(kept, block)
		if len(kept) > 1000 {
			C.free(kept[0])
			kept = kept[1:]
		}
	}
	for _, block := range kept[200:] {
		C.free(block)
	}
	return sum
}

func main() {
	var group sync.WaitGroup
	sums := make([]int, 4)
	for maker := range sums {
		group.Add(1)
		go func() {
			defer group.Done()
			sums[maker] = work(maker)
		}()
	}
	group.Wait()
	fmt.Println(sums)
	os.Stdin.Read(make([]byte, 1))
}
