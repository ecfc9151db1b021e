//go:build unix

package packaging

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// An example of several replicas: what starts each of them, and how long it may stop.
type example struct {
	command []string
	env     []string // names
	config  string
	host    string // that others call it by
	grace   time.Duration
	count   int
}

// composeExample reads packaging/compose.
func composeExample(t *testing.T) example {
	t.Helper()
	type service struct {
		Command     []string
		Environment map[string]string
		Grace       string `yaml:"stop_grace_period"`
		Volumes     []string
	}
	var file struct{ Services map[string]service }
	read(t, "compose/compose.yaml", &file)
	e := example{config: text(t, "compose/dragoman.yaml"), host: "gateway1:8787"}
	for name, s := range file.Services {
		if !strings.HasPrefix(name, "gateway") {
			continue
		}
		e.count++
		e.command, e.env = s.Command, names(s.Environment)
		var err error
		if e.grace, err = time.ParseDuration(s.Grace); err != nil {
			t.Error(err)
		}
		if !slices.Contains(s.Volumes, "./dragoman.yaml:/etc/dragoman/config.yaml:ro") {
			t.Errorf("%s has no configuration", name)
		}
		if !strings.Contains(text(t, "compose/Caddyfile"), name+":8787") {
			t.Errorf("the balancer does not know %s", name)
		}
	}
	return e
}

// kubernetesExample reads packaging/kubernetes.yaml.
func kubernetesExample(t *testing.T) example {
	t.Helper()
	e := example{host: "dragoman:8787"}
	for document := range strings.SplitSeq(text(t, "kubernetes.yaml"), "\n---\n") {
		var d struct {
			Kind       string
			StringData map[string]string `yaml:"stringData"`
			Data       map[string]string
			Spec       struct {
				Replicas int
				Template struct {
					Spec struct {
						Grace      int `yaml:"terminationGracePeriodSeconds"`
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
		switch d.Kind {
		case "Secret":
			e.env = names(d.StringData)
		case "ConfigMap":
			e.config = d.Data["config.yaml"]
		case "Deployment":
			e.count, e.command = d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Args
			e.grace = time.Duration(d.Spec.Template.Spec.Grace) * time.Second
		}
	}
	return e
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func names(of map[string]string) (all []string) {
	for name := range of {
		all = append(all, name)
	}
	return all
}

// TestReplicas: the examples of several replicas give each all that its configuration and
// its stopping need, and their command lines, but for where they listen, serve as replicas of
// one gateway.
func TestReplicas(t *testing.T) {
	for name, e := range map[string]example{"compose": composeExample(t), "kubernetes": kubernetesExample(t)} {
		var used []string
		for _, m := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(e.config, -1) {
			used = append(used, m[1])
		}
		for _, variable := range append(used, "DRAGOMAN_API_KEY") {
			if !slices.Contains(e.env, variable) {
				t.Errorf("%s: nothing gives %s", name, variable)
			}
		}
		f, err := config.Parse("config.yaml", []byte(e.config), func(string) (string, bool) { return "value", true })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if need := f.Replicas.Notice + f.HTTP.DrainTimeout; e.count != 3 || e.grace <= need {
			t.Errorf("%s: %d replicas, with %s to stop that need %s", name, e.count, e.grace, need)
		}
		url := pgtest.URL(t)
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "dragoman"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "dragoman", "config.yaml"), []byte(e.config), 0o600); err != nil {
			t.Fatal(err)
		}
		command := slices.Clone(e.command)
		at := slices.Index(command, "0.0.0.0:8787")
		if at < 0 {
			t.Fatalf("%s: %v", name, command)
		}
		command[at] = "127.0.0.1:0"
		env := []string{
			"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_STATE_HOME=" + dir, "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=none",
			"DRAGOMAN_API_KEY=" + "a key of some thirty characters, all of them known",
			"DRAGOMAN_STORE_KEY=" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{4}, 32)), "DRAGOMAN_STORE_URL=" + url,
		}
		for i := range 2 {
			if replica := serves(t, binary(t), e.host, command, env); !strings.Contains(replica, fmt.Sprintf("replicas=%d", i+1)) && !strings.Contains(replica, fmt.Sprintf(`"replicas":%d`, i+1)) {
				t.Errorf("%s: replica %d says %s", name, i+1, replica)
			}
		}
	}
}

// TestTemporaryFolder: the folder for temporary files of a pod is a volume, for the root of
// its files is read-only, and none of the image's, which a volume above it hides.
func TestTemporaryFolder(t *testing.T) {
	var env map[string]string
	var mounts []string
	for document := range strings.SplitSeq(text(t, "kubernetes.yaml"), "\n---\n") {
		var d struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Env          []struct{ Name, Value string }
							VolumeMounts []struct {
								MountPath string `yaml:"mountPath"`
								ReadOnly  bool   `yaml:"readOnly"`
							} `yaml:"volumeMounts"`
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			env = map[string]string{}
			for _, each := range c.Env {
				env[each.Name] = each.Value
			}
			for _, m := range c.VolumeMounts {
				if !m.ReadOnly {
					mounts = append(mounts, m.MountPath)
				}
			}
		}
	}
	temporary := env["TMPDIR"]
	if temporary == "" {
		temporary = regexp.MustCompile(`(?m)^ENV .*\bTMPDIR=(\S+)`).FindStringSubmatch(text(t, "Dockerfile"))[1]
	}
	if !slices.Contains(mounts, temporary) {
		t.Errorf("TMPDIR is %s; what can be written is %q", temporary, mounts)
	}
}

var (
	listens = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	replica = regexp.MustCompile(`(?m)^.*this is a replica.*$`)
)

// serves starts a replica, waits until it is ready, and returns what it says of itself. It
// runs until the test ends, and ends well then.
func serves(t *testing.T, binary, host string, command, env []string) string {
	t.Helper()
	cmd := exec.Command(binary, command...)
	cmd.Env = env
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	address, said := make(chan string, 1), make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if m := replica.FindString(lines.Text()); m != "" {
				said <- m
			}
			if m := listens.FindString(lines.Text()); m != "" && len(address) == 0 {
				address <- m
			}
		}
		close(said)
		close(address)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &all)
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	line, url := <-said, <-address
	if url == "" {
		return line + " (it does not listen)"
	}
	ready(t, url, host)
	return line
}

// ready waits until a replica says that it is ready, to whoever calls it by a name.
func ready(t *testing.T, url, host string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		switch {
		case res.StatusCode == http.StatusOK:
			return
		case res.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline):
			t.Fatalf("%s as %s: %s", url, host, res.Status)
		}
	}
}

// TestCaddyfile: the balancer of the example reads its file.
func TestCaddyfile(t *testing.T) {
	caddy := need(t, "caddy", "caddy")
	output(t, []string{"HOME=" + t.TempDir()}, caddy, "validate", "--adapter", "caddyfile", "--config", "compose/Caddyfile")
}

// TestCaddyfileSendsOnce: the balancer of the example sends nothing elsewhere that it has sent
// to one replica, whatever its method is.
func TestCaddyfileSendsOnce(t *testing.T) {
	caddy := need(t, "caddy", "caddy")
	var sent atomic.Int32
	file := text(t, "compose/Caddyfile")
	for i := range 3 {
		gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				sent.Add(1)
				panic(http.ErrAbortHandler)
			}
		}))
		t.Cleanup(gateway.Close)
		// Where a connection that was used before ends, any client may ask the same again.
		gateway.Config.SetKeepAlivesEnabled(false)
		file = strings.Replace(file, fmt.Sprintf("gateway%d:8787", i+1), gateway.Listener.Addr().String(), 1)
	}
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	file = strings.Replace(file, "\n:8787 {", "\nhttp://"+address+" {\n\tbind 127.0.0.1", 1)
	file = strings.Replace(file, "auto_https off", "auto_https off\n\tadmin off", 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(caddy, "run", "--adapter", "caddyfile", "--config", path)
	cmd.Env = []string{"HOME=" + dir}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ask := func(path string) (status int) {
		res, err := http.Get("http://" + address + path)
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ask("/readyz") != http.StatusOK; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the balancer does not answer")
		}
	}
	if status := ask("/v1/models"); status != http.StatusBadGateway || sent.Load() != 1 {
		t.Errorf("it answers %d, and has sent the request %d times", status, sent.Load())
	}
}
