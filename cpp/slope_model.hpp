// Model of the slopes of the prediction: each slope is a linear function of the row.
//
// The slopes of local fits are noisy. Their ridge regression on the rows has little noise, and belongs to a quadratic
// function of the features, which is a cheap surrogate of the prediction.
#pragma once

#include <vector>

#include "column_importance.hpp"
#include "feature_views.hpp"

namespace ellipack {

// Returns the regression of the slopes at the sampled rows on these rows, in the units of a view: the coefficients of
// each feature for all slopes, a symmetric matrix as that of the second derivatives of a function, then the intercepts.
// It is empty if there are few rows or very many features.
std::vector<double> fit_slope_model(const ImportanceParts& importance, const FeatureView& view);

}  // namespace ellipack
