package tumblebug

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// MciReq is the request for an MCI.
type MciReq struct {
	Name        string
	Description string
	SubGroups   []SubGroup
	Hold        bool // stop in Prepared until continue or withdraw
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	// They count towards [lifecycle.Limits].Payload of the MCI, which is 1 MiB.
	Attributes json.RawMessage
}

// SubGroup is a number of equal VMs in one region. The names of its VMs are web-1,
// web-2 and so on.
type SubGroup struct {
	Name     string
	Size     int // 0: 1
	Provider string
	Region   string
	Spec     string
	Image    string
	// Attributes are those of each VM of the group, as in [MciReq]. Requests to the
	// provider contain them.
	Attributes json.RawMessage `json:",omitempty"`
}

// MaxVMs is the greatest number of VMs of one request.
const MaxVMs = 10_000

// check returns [lifecycle.ErrInvalid] for a malformed request.
func (r *MciReq) check() error {
	if err := checkName("MCI", r.Name); err != nil {
		return err
	}
	if len(r.SubGroups) == 0 {
		return fmt.Errorf("%w: MCI %q has no SubGroup", lifecycle.ErrInvalid, r.Name)
	}
	seen, total := map[string]bool{}, 0
	for i := range r.SubGroups {
		g := &r.SubGroups[i]
		if err := checkNames("SubGroup", g.Name, "provider", g.Provider, "region", g.Region); err != nil {
			return err
		}
		if g.Size < 0 || g.Size > MaxVMs || total+g.size() > MaxVMs {
			return fmt.Errorf("%w: SubGroup %q of %d VMs: an MCI has at most %d", lifecycle.ErrInvalid, g.Name, g.Size, MaxVMs)
		}
		total += g.size()
		for _, name := range g.vms() {
			if err := checkName("VM", name); err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("%w: two VMs %q", lifecycle.ErrInvalid, name)
			}
			seen[name] = true
		}
	}
	return nil
}

func (g *SubGroup) size() int { return max(g.Size, 1) }

// vms returns the names of the VMs of the group.
func (g *SubGroup) vms() []string {
	names := make([]string, g.size())
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", g.Name, i+1)
	}
	return names
}

// spec returns the content of a VM of the group.
func (g *SubGroup) spec(mci *mciRecord) VMSpec {
	return VMSpec{
		MCI: mci.ID, Life: mci.Payload.Life, Asked: mci.Operation,
		SubGroup: g.Name, Provider: g.Provider, Region: g.Region, Spec: g.Spec, Image: g.Image,
		Attributes: g.Attributes,
	}
}

// size returns the number of VMs that the MCI was requested with.
func (m *MCISpec) size() (n int) {
	for i := range m.SubGroups {
		n += m.SubGroups[i].size()
	}
	return n
}

// maxName is the greatest length of a name in bytes: three names and two slashes are
// an id.
const maxName = 63

// checkName returns [lifecycle.ErrInvalid] for a name that cannot be a part of an id or
// of a path of limits.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= maxName && strings.Trim(name, ".") != ""
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c))
	}
	if !ok {
		return fmt.Errorf("%w: %s name %q: use at most %d letters, digits, dots, dashes and underscores",
			lifecycle.ErrInvalid, what, name, maxName)
	}
	return nil
}

// checkNames is checkName for pairs of what and name.
func checkNames(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := checkName(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}
