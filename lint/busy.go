package lint

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// overloaded is how many processes may want a processor, for each that there is, before
// how long something takes says more of the machine than of a server.
const overloaded = 1.5

// machineBusy reports whether the machine has more to do than it can. Where the system
// does not tell, it says no.
func machineBusy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	return busyBy(string(text), runtime.NumCPU())
}

// busyBy judges what /proc/loadavg says by the number of processors.
func busyBy(loadavg string, processors int) bool {
	last, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(last, 64)
	return err == nil && load > overloaded*float64(processors)
}
