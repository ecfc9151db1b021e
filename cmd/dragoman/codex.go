package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/api"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

func codexCommand() *cobra.Command {
	var w codexWish
	cmd := &cobra.Command{
		Use:   "codex",
		Short: "Point Codex CLI to a gateway",
		Long: `Prints what Codex CLI needs in its configuration to use a gateway that runs, and checks
that the gateway answers. With --write it is put into config.toml in $CODEX_HOME, or
~/.codex: nothing that stands there for another provider is changed.

  dragoman codex --model qwen3 --write
  DRAGOMAN_API_KEY=none codex

Codex sends the key in DRAGOMAN_API_KEY, which has to be set, to any text where the
gateway asks for none: without one it does not ask what models there are.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&w.url, "url", ourGateway+"/v1", "`ADDRESS` of the gateway")
	cmd.Flags().StringVar(&w.model, "model", "", "`NAME` of the model (default the first that the gateway has)")
	cmd.Flags().BoolVar(&w.write, "write", false, "write it into Codex's configuration")
	return cmd
}

// codexKey is the variable with the key that Codex sends.
const codexKey = "DRAGOMAN_API_KEY"

// A codexWish is what the flags say.
type codexWish struct {
	url, model string
	write      bool
}

func (w *codexWish) run(ctx context.Context) error {
	w.url = strings.TrimRight(w.url, "/")
	if strings.ContainsAny(w.url+w.model, "\"\\\n\r\x00") {
		return &usageError{errors.New("an address and a model have no quotes, backslashes or line ends"), ""}
	}
	if err := checkGateway("--url", w.url, ourGateway+"/v1"); err != nil {
		return err
	}
	models, err := listedModels(ctx, w.url)
	if err != nil {
		return err
	}
	switch {
	case len(models) == 0 && w.model == "": // some APIs have no list, and the model all the same
		return &failure{fmt.Errorf("the gateway at %s has no model for you", w.url), "name one with --model, or see models in its configuration, and what your key may use"}
	case w.model == "":
		w.model = models[0]
	case !slices.Contains(models, w.model):
		fmt.Fprintf(os.Stderr, "the gateway does not list the model %q; it may know it all the same\n", w.model)
	}
	if !w.write {
		_, err = io.WriteString(os.Stdout, w.top()+"\n"+w.provider(nil))
		return err
	}
	path, err := codexConfig()
	if err != nil {
		return err
	}
	return w.writeTo(path)
}

// top returns the keys that choose the model, which stand before all tables.
func (w *codexWish) top() string {
	return fmt.Sprintf("model = %q\nmodel_provider = \"dragoman\"\n", w.model)
}

// provider returns the table of the provider, with what somebody has added to it.
func (w *codexWish) provider(added map[string]any) string {
	headers := map[string]any{api.UsageHeader: "last"}
	if theirs, ok := added["http_headers"].(map[string]any); ok {
		maps.Copy(headers, theirs)
	}
	added = maps.Clone(added)
	var b strings.Builder
	b.WriteString("[model_providers.dragoman]\n")
	for _, m := range [...][2]string{{"name", "Dragoman"}, {"base_url", w.url}, {"wire_api", "responses"}, {"env_key", codexKey}, {"model_catalog_url", w.url + "/models"}} {
		fmt.Fprintf(&b, "%s = %q\n", m[0], m[1])
		delete(added, m[0])
	}
	delete(added, "http_headers")
	members := toml.NewEncoder(&b).SetTablesInline(true).SetIndentTables(false)
	_ = members.Encode(map[string]any{"http_headers": headers}) // which a text always takes
	for _, name := range slices.Sorted(maps.Keys(added)) {
		_ = members.Encode(map[string]any{name: added[name]})
	}
	return b.String()
}

// codexConfig returns where Codex has its configuration.
func codexConfig() (string, error) {
	home := os.Getenv("CODEX_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding Codex's configuration: %w", err)
		}
		home = filepath.Join(user, ".codex")
	}
	return filepath.Join(home, "config.toml"), nil
}

// writeTo puts the provider into Codex's configuration.
func (w *codexWish) writeTo(path string) error {
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	after, chosen, err := w.edit(string(before))
	if err != nil {
		return &failure{fmt.Errorf("%s was left as it is: %w", path, err), "without --write it is printed"}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.Update(path, []byte(after)); err != nil {
		return err
	}
	start := codexKey + "=none codex"
	if os.Getenv(codexKey) != "" { // the key that the gateway wants, which stays where it is
		start = "codex"
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", path)
	if chosen {
		fmt.Fprintf(os.Stderr, "start Codex with: %s\n", start)
	} else {
		fmt.Fprintf(os.Stderr, "it chooses another provider, which stays: start Codex with: %s -c model_provider=dragoman -m %s\n", start, w.model)
	}
	return nil
}

// edit returns a configuration of Codex's with the provider in it, and whether it is the
// one that is chosen. A choice that stands there stays. What is not TOML, before or
// afterwards, is an error.
func (w *codexWish) edit(before string) (after string, chosen bool, err error) {
	before = strings.TrimPrefix(before, "\ufeff")
	var has struct {
		Providers struct {
			Dragoman map[string]any `toml:"dragoman"`
		} `toml:"model_providers"`
	}
	if err := toml.Unmarshal([]byte(before), &has); err != nil {
		return "", false, fmt.Errorf("it is no TOML: %w", err)
	}
	head, tail, hasChoice, chosen := codexParts(before)
	if !hasChoice {
		head, chosen = w.top()+head, true
	}
	for _, part := range []*string{&head, &tail} {
		if *part = strings.TrimRight(*part, "\n"); *part != "" {
			*part += "\n\n"
		}
	}
	after = head + tail + w.provider(has.Providers.Dragoman)
	if err := toml.Unmarshal([]byte(after), &map[string]any{}); err != nil {
		return "", false, fmt.Errorf("the provider does not go with what stands there: %w", err)
	}
	return after, chosen, nil
}

// codexParts returns what stands before the tables of a configuration, and its tables but
// for ours; and whether it chooses a model or a provider, and ours. Only a parser tells a
// table from a line of a text that looks like one.
func codexParts(before string) (head, tail string, hasChoice, chosen bool) {
	none := len(before)
	tables, from, to := none, none, none // where the first table begins, and ours begins and ends
	var p unstable.Parser
	p.Reset([]byte(before))
	for p.NextExpression() {
		e := p.Expression()
		var path []string
		at := none // the line of the header
		for keys := e.Key(); keys.Next(); {
			key := keys.Node()
			at = min(at, strings.LastIndexByte(before[:key.Raw.Offset], '\n')+1)
			path = append(path, string(key.Data))
		}
		if e.Kind == unstable.KeyValue {
			if key := strings.Join(path, "."); tables == none && (key == "model" || key == "model_provider") {
				hasChoice = true
				chosen = chosen || key == "model_provider" && string(e.Value().Data) == "dragoman"
			}
			continue
		}
		if tables == none {
			tables = beginning(before, at)
		}
		switch {
		case len(path) > 1 && path[0] == "model_providers" && path[1] == "dragoman":
			if from == none {
				from = at
			}
		case from < none && to == none:
			to = beginning(before, at)
		}
	}
	return before[:tables], before[tables:from] + before[to:], hasChoice, chosen
}

// beginning returns where a table begins whose header is at a place: with the comments
// right above it. A line that ends a text of several lines is no comment.
func beginning(text string, at int) int {
	for at > 0 {
		line := strings.LastIndexByte(text[:at-1], '\n') + 1
		above := strings.TrimSpace(text[line:at])
		if !strings.HasPrefix(above, "#") || strings.Contains(above, `"""`) || strings.Contains(above, "'''") {
			break
		}
		at = line
	}
	return at
}

// listedModels asks a gateway for its models.
func listedModels(ctx context.Context, base string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, err
	}
	if key := os.Getenv(codexKey); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := gatewayClient.Do(req)
	if err != nil {
		return nil, unanswered("--url", err)
	}
	defer resp.Body.Close()
	if err := checkRedirect(resp); err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, &failure{fmt.Errorf("the gateway at %s wants a key", base), wantedKey}
	case http.StatusNotFound:
		return nil, &failure{fmt.Errorf("there is no list of models at %s/models", base), "the address of a gateway here ends in /v1: --url " + ourGateway + "/v1"}
	default:
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		if err := checkTLS(resp.StatusCode, answer); err != nil {
			return nil, err
		}
		return nil, &failure{fmt.Errorf("the gateway at %s says %s", base, resp.Status), "its log says why"}
	}
	var list struct {
		Models []struct {
			Slug string `json:"slug"`
		} `json:"models"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&list); err != nil {
		return nil, &failure{fmt.Errorf("what answers at %s is no Dragoman: %w", base, err), "name another one with --url"}
	}
	var names []string
	for _, m := range list.Models {
		names = append(names, m.Slug)
	}
	return names, nil
}
