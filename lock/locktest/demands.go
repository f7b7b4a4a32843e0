package locktest

import "slices"

// demands returns all that is demanded, group by group.
func demands() []demand {
	return slices.Concat(
		exclusionDemands(), traceDemands(), releaseDemands(), orderDemands(), nameDemands(), tokenDemands(),
		lossDemands(), listDemands(), contextDemands(), inputDemands(), idDemands(), conversionDemands(),
		modelDemands(), historyDemands(),
	)
}
