//! Connected components of a graph, each named by its smallest member.

/// Computes the component of each of `count` items that `links` connect. The name of a component is its
/// smallest member.
#[must_use]
pub fn components(count: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..count).collect();
    for (a, b) in links {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        parents[a.max(b)] = a.min(b);
    }
    (0..count).map(|at| root(&mut parents, at)).collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        // Each step halves the path for the next search.
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_named_by_its_smallest_member() {
        assert_eq!(components(7, [(5, 3), (6, 5), (1, 2), (3, 6)]), [0, 1, 1, 3, 4, 3, 3]);
        assert_eq!(components(4, [(3, 2), (2, 1), (1, 0)]), [0; 4]);
        assert_eq!(components(0, []), Vec::<usize>::new());
    }
}
