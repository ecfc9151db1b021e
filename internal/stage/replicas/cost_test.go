//go:build linux

package replicas_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkReplicas measures what a request costs the replicas together, in CPU time, with
// one of them and with three, at 16 clients for each (GOMAXPROCS=2). PostgreSQL's own time and that of the model,
// the server and the balancer, which are in this process, is not counted.
func BenchmarkReplicas(b *testing.B) {
	for _, count := range []int{1, 3} {
		s := staged(b, plan{count: count})
		for name, request := range map[string][2]string{
			"chat, no call":             {"/v1/chat/completions", chat(user("SAY hello"), "")},
			"chat, a call that reads":   {"/v1/chat/completions", chat(user("CALL look {\"text\":\"x\"}\nSAY done"), "")},
			"chat, a call that changes": {"/v1/chat/completions", chat(user("CALL count {}\nSAY done"), "")},
			"a response that is stored": {"/v1/responses", `{"model":"rehearsal","input":"SAY hello"}`},
		} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), count), func(b *testing.B) {
				for range 50 * count { // lists, connections, statements
					s.do(s.ann, "POST", s.URL+request[0], request[1])
				}
				before := s.cpu(b)
				b.SetParallelism(8 * count) // as many clients for each: what comes together is written together
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if a, err := send(b.Context(), s.ann, "POST", s.URL+request[0], request[1]); err != nil || a.status != 200 {
							b.Errorf("%d %s, %v", a.status, a.body, err)
							return
						}
					}
				})
				b.ReportMetric((s.cpu(b)-before)*1e6/float64(b.N), "cpu-µs/op")
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
