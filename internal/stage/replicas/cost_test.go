//go:build linux

package replicas_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkReplicas measures what a request costs gateways together, in CPU time, where there
// is one, where three share a store, and where three share nothing: what three processes cost
// on two processors anyway (caches, a runtime each, sleeping and waking more often) is in both
// of these, and what sharing costs in the first alone. There are 16 clients for each gateway
// (GOMAXPROCS=2). PostgreSQL's own time and that of the model, the server and the balancer,
// which are in this process, is not counted.
func BenchmarkReplicas(b *testing.B) {
	for _, setup := range []struct {
		name          string
		fleets, count int
	}{{"one", 1, 1}, {"three", 1, 3}, {"three apart", 3, 1}} {
		var fleets []*stage
		for range setup.fleets {
			fleets = append(fleets, staged(b, plan{count: setup.count}))
		}
		cpu := func() (seconds float64) {
			for _, s := range fleets {
				seconds += s.cpu(b)
			}
			return seconds
		}
		gateways := setup.fleets * setup.count
		for name, request := range map[string][2]string{
			"chat, no call":             {"/v1/chat/completions", chat(user("SAY hello"), "")},
			"chat, a call that reads":   {"/v1/chat/completions", chat(user("CALL look {\"text\":\"x\"}\nSAY done"), "")},
			"chat, a call that changes": {"/v1/chat/completions", chat(user("CALL count {}\nSAY done"), "")},
			"a response that is stored": {"/v1/responses", `{"model":"rehearsal","input":"SAY hello"}`},
		} {
			b.Run(strings.ReplaceAll(name+"/"+setup.name, " ", "_"), func(b *testing.B) {
				for n := range 50 * gateways { // lists, connections, statements
					s := fleets[n%len(fleets)]
					s.do(s.ann, "POST", s.URL+request[0], request[1])
				}
				before := cpu()
				var turn atomic.Int64
				b.SetParallelism(8 * gateways) // as many clients for each: what comes together is written together
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						s := fleets[int(turn.Add(1))%len(fleets)]
						if a, err := send(b.Context(), s.ann, "POST", s.URL+request[0], request[1]); err != nil || a.status != 200 {
							b.Errorf("%d %s, %v", a.status, a.body, err)
							return
						}
					}
				})
				b.ReportMetric((cpu()-before)*1e6/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// cpu is the CPU time of all replicas, in seconds (proc_pid_stat(5)).
func (s *stage) cpu(t testing.TB) (seconds float64) {
	t.Helper()
	for i := range s.Count() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Replica(i).PID()))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, ticks := range fields[11:13] { // utime and stime
			n, err := strconv.ParseFloat(ticks, 64)
			if err != nil {
				t.Fatal(err)
			}
			seconds += n / 100
		}
	}
	return seconds
}
