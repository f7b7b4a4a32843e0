package tumblebug

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// Policy says what becomes of a creation of which some VMs have failed. If all
// have, the MCI is Failed in any case.
type Policy string

const (
	// Continue keeps what there is, the failed VMs too. The default.
	Continue Policy = "continue"
	// RefineFailed removes the failed VMs from the MCI.
	RefineFailed Policy = "refine"
	// Rollback terminates the others and removes the failed: the MCI is Failed.
	Rollback Policy = "rollback"
)

// MciReq is the request for an MCI.
type MciReq struct {
	Name        string
	Description string
	SubGroups   []SubGroup
	Policy      Policy // empty: Continue
	Hold        bool   // stop when it is prepared, until continue or withdraw
}

// SubGroup is a number of equal VMs at one place. Its VMs are called after it:
// web-1, web-2 and so on.
type SubGroup struct {
	Name     string
	Size     int // 0: 1
	Provider string
	Region   string
	Spec     string
	Image    string
}

// MaxVMs is the greatest number of VMs of one request.
const MaxVMs = 10_000

// check refuses what is wrong with a request whatever there is. The error is
// [lifecycle.ErrInvalid].
func (r *MciReq) check() error {
	if err := checkName("MCI", r.Name); err != nil {
		return err
	}
	switch r.Policy {
	case "", Continue, RefineFailed, Rollback:
	default:
		return fmt.Errorf("%w: policy %q", lifecycle.ErrInvalid, r.Policy)
	}
	if len(r.SubGroups) == 0 {
		return fmt.Errorf("%w: an MCI without VMs", lifecycle.ErrInvalid)
	}
	seen, total := map[string]bool{}, 0
	for _, g := range r.SubGroups {
		for _, n := range []struct{ what, name string }{{"SubGroup", g.Name}, {"provider", g.Provider}, {"region", g.Region}} {
			if err := checkName(n.what, n.name); err != nil {
				return err
			}
		}
		if g.Size < 0 || g.Size > MaxVMs || total+g.size() > MaxVMs {
			return fmt.Errorf("%w: SubGroup %s of %d VMs, at most %d are in an MCI", lifecycle.ErrInvalid, g.Name, g.Size, MaxVMs)
		}
		total += g.size()
		for _, name := range g.vms() {
			if err := checkName("VM", name); err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("%w: two VMs %s", lifecycle.ErrInvalid, name)
			}
			seen[name] = true
		}
	}
	return nil
}

func (g *SubGroup) size() int { return max(g.Size, 1) }

// vms are the names of the VMs of the group.
func (g *SubGroup) vms() []string {
	names := make([]string, g.size())
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", g.Name, i+1)
	}
	return names
}

// spec is the content of a VM of the group.
func (g *SubGroup) spec(mci *mciRecord) VMSpec {
	return VMSpec{MCI: mci.ID, Life: mci.Payload.Life, SubGroup: g.Name, Provider: g.Provider, Region: g.Region, Spec: g.Spec, Image: g.Image}
}

// size is how many VMs the MCI was asked for with.
func (m *MCISpec) size() (n int) {
	for i := range m.SubGroups {
		n += m.SubGroups[i].size()
	}
	return n
}

// maxName is the longest name in bytes: three of them and two slashes are an id.
const maxName = 63

// checkName refuses what cannot be a part of an id or of a path of limits.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= maxName && strings.Trim(name, ".") != ""
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c))
	}
	if !ok {
		return fmt.Errorf("%w: %s name %q: letters, digits, and -_. in between are allowed, at most %d of them",
			lifecycle.ErrInvalid, what, name, maxName)
	}
	return nil
}

// checkNames refuses what cannot be the id of an MCI or a VM.
func checkNames(nsID, mciID string, vmID ...string) error {
	err := checkName("namespace", nsID)
	if err == nil {
		err = checkName("MCI", mciID)
	}
	for _, id := range vmID {
		if err == nil {
			err = checkName("VM", id)
		}
	}
	return err
}
