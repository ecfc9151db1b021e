package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

func claudeCommand() *cobra.Command {
	var at, model, base string
	var write bool
	fails := func(cmd *cobra.Command, err error) error { // what is printed otherwise is evaluated by a shell
		if err != nil && !write {
			failEval(cmd)
		}
		return err
	}
	cmd := &cobra.Command{
		Use:   "claude",
		Short: "Say how Claude Code uses the gateway",
		Long: `Prints the environment in which Claude Code talks to the gateway, and looks whether
the gateway answers and has the model:

  eval "$(dragoman claude --model qwen3-coder)" && claude

Where something is wrong it prints "false", so that the shell goes no further.

With --write it goes into "env" of Claude Code's settings (~/.claude/settings.json, or
in $CLAUDE_CONFIG_DIR); everything else there stays as it is. The key is that in
DRAGOMAN_API_KEY, and stands in the settings then, which only you can read.`,
		Args: func(cmd *cobra.Command, args []string) error { return fails(cmd, cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			defer func() { err = fails(cmd, err) }()
			if base == "" {
				s := selection{config: at}
				file, err := s.load(only("listen", "tls.*"))
				if err != nil {
					return err
				}
				base = ownAddress(file)
			}
			if err := checkGateway("--url", base, ourGateway); err != nil {
				return err
			}
			base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") // which Claude Code appends
			key := os.Getenv("DRAGOMAN_API_KEY")
			name, err := servedModel(cmd.Context(), base, key, model)
			if err != nil {
				return err
			}
			settings := claudeEnvironment(base, cmp.Or(key, "none"), name, modelWindow(cmd.Context(), base, key, name))
			if write {
				return writeClaude(cmd, settings, key != "")
			}
			for _, name := range stale(settings, os.Getenv) {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "unset %s\n", name); err != nil {
					return err
				}
			}
			for _, m := range settings.Members {
				value, _ := rawjson.String(m.Value)
				shown := "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
				if key != "" && m.Name == "ANTHROPIC_AUTH_TOKEN" {
					shown = `"$DRAGOMAN_API_KEY"`
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "export %s=%s\n", m.Name, shown); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "`NAME` of the model for everything that Claude Code asks (default the first that the gateway lists)")
	cmd.Flags().StringVar(&base, "url", "", "`URL` of the gateway (default where the configuration says that it listens)")
	cmd.Flags().BoolVar(&write, "write", false, "write Claude Code's settings")
	configFlag(cmd, &at)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fails(cmd, flagError(cmd, err))
	})
	return cmd
}

// failEval has a shell fail that evaluates what is printed: to evaluate nothing succeeds, and
// Claude Code would be started without the gateway, and talk to Anthropic.
func failEval(cmd *cobra.Command) { fmt.Fprintln(cmd.OutOrStdout(), "false") }

// ownAddress is where a gateway is reached from its own machine.
func ownAddress(file *config.File) string {
	host, port, err := net.SplitHostPort(file.Listen)
	if err != nil {
		return scheme(file) + file.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme(file) + net.JoinHostPort(host, port)
}

// leastWindow is how many tokens a model has to read that Claude Code is told of: it
// summarises 33,000 before the end, and its own instructions and tools take 20,000, so that
// with a smaller window it does little else (docs/claude-code.md).
const leastWindow = 90_000

// windowVariables tell Claude Code how much the model reads. The second is ignored for names
// that begin with "claude-"; without it Claude Code takes any other for one that reads a
// million, and says so at each start.
var windowVariables = [2]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"}

// stale returns those of [windowVariables] that an environment has of another model, and that
// are not set anew.
func stale(variables *rawjson.Object, value func(name string) string) (names []string) {
	model, _ := rawjson.String(variables.Get("ANTHROPIC_MODEL"))
	if before := value("ANTHROPIC_MODEL"); before == "" || before == model {
		return nil // those that somebody set for this model are theirs
	}
	for _, name := range windowVariables {
		if variables.Get(name) == nil && value(name) != "" {
			names = append(names, name)
		}
	}
	return names
}

// claudeEnvironment returns the variables by name. Where one of the models is left out,
// Claude Code asks for one that is not there, in the background. The window is how many
// tokens the model reads; 0 where that is not known.
func claudeEnvironment(base, key, model string, window int) *rawjson.Object {
	o := &rawjson.Object{}
	o.Set("ANTHROPIC_BASE_URL", rawjson.Quote(base))
	o.Set("ANTHROPIC_AUTH_TOKEN", rawjson.Quote(key))
	o.Set("CLAUDE_CODE_GATEWAY_HINT_HEADERS", rawjson.Quote("1")) // says what each request is for
	for _, name := range []string{"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"} {
		o.Set(name, rawjson.Quote(model))
	}
	if window >= leastWindow {
		for _, name := range windowVariables {
			o.Set(name, rawjson.Quote(strconv.Itoa(window)))
		}
	}
	return o
}

// modelWindow asks the gateway how many tokens a model reads; 0 where it does not say.
func modelWindow(ctx context.Context, base, key, name string) int {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	answer, err := askGateway(ctx, http.MethodGet, base+"/v1/models/"+url.PathEscape(name), key, nil)
	if err != nil {
		return 0
	}
	window, _ := rawjson.Int(rawjson.Get(answer, "max_input_tokens"))
	return window
}

// servedModel asks the gateway for its models, and returns the one that is wanted, or
// the first. A name that is not listed may be served by a pattern all the same, so the
// gateway is asked to count tokens for it.
func servedModel(ctx context.Context, base, key, wanted string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if wanted != "" {
		body := `{"model":` + string(rawjson.Quote(wanted)) + `,"messages":[{"role":"user","content":"Hello"}]}`
		_, err := askGateway(ctx, http.MethodPost, base+"/v1/messages/count_tokens", key, []byte(body))
		return wanted, err
	}
	answer, err := askGateway(ctx, http.MethodGet, base+"/v1/models", key, nil)
	if err != nil {
		return "", err
	}
	o, err := rawjson.ParseObject(answer)
	if err != nil {
		return "", &failure{errors.New("what answers at " + base + " is no gateway: its list of models cannot be read"), ""}
	}
	first, _ := rawjson.String(o.Get("first_id"))
	if first == "" {
		return "", &failure{errors.New("the gateway lists no model"), "name one: --model NAME"}
	}
	return first, nil
}

// wantedKey is how a command gets the key that a gateway wants.
const wantedKey = "set DRAGOMAN_API_KEY to one; \"dragoman keys new\" makes them"

func askGateway(ctx context.Context, method, address, key string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := gatewayClient.Do(req)
	if err != nil {
		return nil, unanswered("--url", err)
	}
	defer res.Body.Close()
	answer, err := safehttp.ReadAll(res.Body, 16<<20)
	switch {
	case err != nil:
		return nil, &failure{fmt.Errorf("the gateway does not answer: %w", err), ""}
	case checkTLS(res.StatusCode, answer) != nil:
		return nil, checkTLS(res.StatusCode, answer)
	case checkRedirect(res) != nil:
		return nil, checkRedirect(res)
	case res.StatusCode == http.StatusUnauthorized:
		return nil, &failure{errors.New("the gateway wants a key"), wantedKey}
	case res.StatusCode != http.StatusOK:
		return nil, &failure{fmt.Errorf("the gateway answered %d: %s", res.StatusCode, said(answer)), ""}
	}
	return answer, nil
}

// said returns the words of an error of the gateway's.
func said(answer []byte) string {
	var document struct{ Error struct{ Message string } }
	if json.Unmarshal(answer, &document) == nil && document.Error.Message != "" {
		return document.Error.Message
	}
	return "no reason"
}

// claudeSettings returns where Claude Code has its settings.
func claudeSettings() (string, error) {
	folder := os.Getenv("CLAUDE_CONFIG_DIR")
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &failure{err, "say where Claude Code's settings are: CLAUDE_CONFIG_DIR"}
		}
		folder = filepath.Join(home, ".claude")
	}
	path := filepath.Join(folder, "settings.json")
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

// writeClaude puts variables into Claude Code's settings. Those with a key are for nobody
// else to read.
func writeClaude(cmd *cobra.Command, settings *rawjson.Object, secret bool) error {
	path, err := claudeSettings()
	if err != nil {
		return err
	}
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &failure{err, ""}
	}
	merged, err := mergeEnvironment(have, settings)
	if err != nil {
		return &failure{fmt.Errorf("%s was left as it is: %w", path, err), "without --write the variables are printed"}
	}
	if secret {
		if err := closeToOthers(path); err != nil {
			return &failure{err, ""}
		}
	}
	if err := atomicfile.Update(path, merged); err != nil {
		return &failure{err, ""}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: env has the gateway now\n", path)
	return nil
}

// closeToOthers keeps others from a file that is to hold a key, if it is there.
func closeToOthers(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&0o077 == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&^0o077)
}

// mergeEnvironment returns settings with variables in their member env, and without what
// another model read. Everything else keeps its place and its value.
func mergeEnvironment(have []byte, variables *rawjson.Object) ([]byte, error) {
	if len(bytes.TrimSpace(have)) == 0 {
		have = []byte("{}")
	}
	if err := rawjson.Check(have); err != nil {
		return nil, err
	}
	all, err := rawjson.ParseObject(have)
	if err != nil {
		return nil, errors.New("it is no JSON object")
	}
	env := &rawjson.Object{}
	if raw := all.Get("env"); !rawjson.IsNull(raw) {
		if env, err = rawjson.ParseObject(raw); err != nil {
			return nil, errors.New("its member env is no object")
		}
	}
	for _, name := range stale(variables, func(name string) string { value, _ := rawjson.String(env.Get(name)); return value }) {
		env.Delete(name)
	}
	for name, value := range variables.All() {
		env.Set(name, value)
	}
	all.Set("env", env.Bytes())
	var b bytes.Buffer
	if err := json.Indent(&b, all.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}
